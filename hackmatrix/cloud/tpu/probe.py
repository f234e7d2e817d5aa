"""Looks at a TPU: asks gcloud what `decide` needs to know."""

import dataclasses
from datetime import UTC, datetime
from typing import Any

from hackmatrix.cloud.tpu import gcloud_lines as commands
from hackmatrix.cloud.tpu.description import Description
from hackmatrix.cloud.tpu.gcloud import MINUTE, NO_GCLOUD, CommandResult, Gcloud
from hackmatrix.cloud.tpu.gcloud_errors import ErrorType, Trouble, trouble_of, trouble_of_ssh
from hackmatrix.cloud.tpu.hosts import look_command
from hackmatrix.cloud.tpu.observed import (
    Hosts,
    Observed,
    Queue,
    TpuNode,
    TpuRun,
    combine,
    log_of,
    read_object,
    reports_of_hosts,
    run_in_bucket,
    run_on_hosts,
    state_of,
)

_PATIENCE = 3 * MINUTE  # for a command that only looks
_PATIENCE_WITH_SSH = MINUTE  # gcloud tries ssh ten times, which can take much longer


class NoAnswer(Exception):
    """gcloud failed to tell."""

    def __init__(self, trouble: Trouble) -> None:
        super().__init__(str(trouble))
        self.trouble = trouble


def look(tpu: Description, gcloud: Gcloud, after: int, now: datetime) -> Observed:
    """The present state of a TPU.

    Args:
        tpu: the TPU.
        gcloud: runs commands.
        after: number of lines of the log that are known here.
        now: the time, with its zone.
    """
    overdue = tpu.last_day is not None and now.date() > tpu.last_day
    observed = Observed(time=now, overdue=overdue)
    try:
        observed = _with_states(observed, tpu, gcloud)
        if observed.node is TpuNode.READY:
            observed = _with_hosts(observed, tpu, gcloud, after)
        if tpu.bucket is not None:
            observed = dataclasses.replace(observed, run=_run(tpu, gcloud))
    except NoAnswer as error:
        return dataclasses.replace(observed, trouble=error.trouble)
    return observed


def look_lines(tpu: Description) -> list[commands.Argv]:
    """The command lines of a look at a TPU that is ready."""
    lines = [commands.describe_request(tpu), commands.describe(tpu)]
    lines.append(commands.ssh(tpu, look_command(tpu, 0)))
    return lines if tpu.bucket is None else [*lines, commands.list_run(tpu)]


def trouble_of_line(argv: commands.Argv, result: CommandResult) -> Trouble | None:
    """The error of a command line, if it failed."""
    on_hosts = argv[3] == "tpu-vm" and argv[4] in ("ssh", "scp")
    return _trouble_in_ssh(result) if on_hosts else _trouble_in(result)


def _trouble_in(result: CommandResult) -> Trouble | None:
    if result.code == 0:
        return None
    if result == NO_GCLOUD:
        return Trouble(ErrorType.NO_GCLOUD, "")
    return trouble_of(result.err)


def _trouble_in_ssh(result: CommandResult) -> Trouble | None:
    if result.code == 0 or result == NO_GCLOUD:
        return _trouble_in(result)
    return trouble_of_ssh(result.code, f"{result.err}\n{result.out}" if result.out else result.err)


def _with_states(observed: Observed, tpu: Description, gcloud: Gcloud) -> Observed:
    request = _describe(gcloud, commands.describe_request(tpu))
    state: dict[str, Any] = request.get("state", {}) if request else {}
    node = _describe(gcloud, commands.describe(tpu))
    failed = (state.get("failedData") or {}).get("error") or {}
    return dataclasses.replace(
        observed,
        queue=state_of(Queue, str(state.get("state", ""))) if request else Queue.ABSENT,
        queue_trouble=trouble_of(str(failed["message"])) if failed.get("message") else None,
        node=state_of(TpuNode, str(node.get("state", ""))) if node else TpuNode.ABSENT,
        created=_moment(str(node.get("createTime", ""))) if node else None,
    )


def _describe(gcloud: Gcloud, argv: commands.Argv) -> dict[str, Any] | None:
    """The output of a describe command; None if there is no such thing."""
    result = gcloud.run(argv, timeout=_PATIENCE, quiet=True)
    trouble = _trouble_in(result)
    if trouble is None:
        found = read_object(result.out)
        if not found:
            raise NoAnswer(Trouble(ErrorType.UNKNOWN, f"it printed no JSON: {result.out!r:.80}"))
        return found
    if trouble.error_type is ErrorType.NOT_FOUND:
        return None
    raise NoAnswer(trouble)


def _with_hosts(observed: Observed, tpu: Description, gcloud: Gcloud, after: int) -> Observed:
    argv = commands.ssh(tpu, look_command(tpu, after))
    result = gcloud.run(argv, timeout=_PATIENCE_WITH_SSH, quiet=True)
    reports = reports_of_hosts(result.out)
    if len(reports) < tpu.slice.hosts:
        trouble = _trouble_in_ssh(result)
        if trouble is not None and trouble.error_type in (
            ErrorType.AUTH,
            ErrorType.SSH_KEY,
            ErrorType.NO_GCLOUD,
        ):
            raise NoAnswer(trouble)
        return dataclasses.replace(observed, hosts=Hosts.UNREACHABLE)
    hosts, code, last_lines = combine(reports, tpu.slice.hosts)
    return dataclasses.replace(
        observed,
        hosts=hosts,
        code=code,
        last_lines=last_lines,
        log=log_of(reports, after),
        run=run_on_hosts(reports),
    )


def _run(tpu: Description, gcloud: Gcloud) -> TpuRun:
    result = gcloud.run(commands.list_run(tpu), timeout=_PATIENCE, quiet=True)
    trouble = _trouble_in(result)
    if trouble is not None and "matched no objects" not in trouble.message:
        raise NoAnswer(
            Trouble(ErrorType.NO_BUCKET, trouble.message)
            if trouble.error_type is ErrorType.NOT_FOUND
            else trouble
        )
    return run_in_bucket(result.out, tpu.job)


def _moment(text: str) -> datetime | None:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
