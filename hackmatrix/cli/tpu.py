"""`hackmatrix tpu`: cloud TPUs, through Google's own gcloud."""

import dataclasses
import shlex
import sys
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from time import sleep
from typing import Any, NamedTuple

from filelock import FileLock, Timeout

from hackmatrix.cli.arguments import parse_explicit
from hackmatrix.cli.main import FAILED
from hackmatrix.cloud.tpu import gcloud_lines as commands
from hackmatrix.cloud.tpu import preparation
from hackmatrix.cloud.tpu.costs import check_end_date, price_in_words, quota_table
from hackmatrix.cloud.tpu.decision import TpuHistory, decide
from hackmatrix.cloud.tpu.description import Description, read_description
from hackmatrix.cloud.tpu.gcloud import NO_GCLOUD, ErrorType, Gcloud, Trouble, what_to_do
from hackmatrix.cloud.tpu.job_files import EXPORTS, export, warnings
from hackmatrix.cloud.tpu.probe import Hosts, Queue, look, look_lines, trouble_of_line
from hackmatrix.cloud.tpu.run import Driver, advice_for, rehearse, train
from hackmatrix.core.errors import UserError
from hackmatrix.core.options import check, option, options_of
from hackmatrix.learning.settings.config import OPTIONS, TrainOptions

# --- Options of the subcommands of `hackmatrix tpu` -----------------------------------------------


_HOSTS = "number of a host, 0-3 for several, or all"


@dataclass(frozen=True)
class TpuOptions:
    """Options of every subcommand."""

    file: Path = option(dataclasses.MISSING, "description of the TPU and of the training on it")
    dry_run: bool = option(False, "print the gcloud lines; run and write nothing")

    def __post_init__(self) -> None:
        check(self)


@dataclass(frozen=True)
class CreateOptions(TpuOptions):
    """Options that ask for a TPU."""

    direct: bool = option(False, "create the TPU now or fail, without the queue")


@dataclass(frozen=True)
class HostOptions(TpuOptions):
    """Which hosts."""

    worker: str = option("all", _HOSTS)


@dataclass(frozen=True)
class LogOptions(TpuOptions):
    """Options of the logs."""

    worker: str = option("0", _HOSTS)
    lines: int = option(100, "number of last lines", at_least=1)
    follow: bool = option(False, "keep printing new output")
    service: bool = option(False, "the log of the TPU's own service instead of training's")


@dataclass(frozen=True)
class FetchOptions(TpuOptions):
    """Where to."""

    output: Path = option(Path("checkpoints"), "local folder to copy the run into")


@dataclass(frozen=True)
class RunOptions(FetchOptions):
    """Options of resuming."""

    retry: bool = option(False, "after training failed: update the code and try again")
    keep: bool = option(False, "keep the TPU when training has finished")
    delete_on_failure: bool = option(
        False, "if training fails, fetch what is there and delete the TPU instead of keeping it"
    )


# --- The subcommands of `hackmatrix tpu`: what they do --------------------------------------------


Lines = list[commands.Argv]


class Subcommand(NamedTuple):
    """A subcommand: what it does, its options, and either its gcloud lines or its work."""

    purpose: str
    options: type[TpuOptions] = TpuOptions
    lines: Callable[[Description, Any], Lines] | None = None
    work: Callable[[Description, Any, Gcloud], int] | None = None


def run_lines(called: str, options: TpuOptions, gcloud: Gcloud, lines: Lines) -> int:
    """Runs lines one after the other until one fails, which is explained."""
    for argv in lines:
        trouble = trouble_of_line(argv, gcloud.show(argv))
        if trouble is not None:
            return _fail(called, options, trouble)
    return 0


def run_on_hosts(
    called: str, tpu: Description, options: HostOptions, gcloud: Gcloud, command_line: list[str]
) -> int:
    """Runs a command on hosts: one word is a line of a shell, several are its words."""
    text = command_line[0] if len(command_line) == 1 else shlex.join(command_line)
    return run_lines(called, options, gcloud, [commands.ssh(tpu, text, options.worker)])


def _create(tpu: Description, options: CreateOptions) -> Lines:
    near = check_end_date(tpu, _now().date())
    lines = preparation.create(tpu, directly=options.direct, dry_run=options.dry_run)
    _warn(tpu)
    if near:
        _say(f"warning: {near}")
    _say(f"it will cost {price_in_words(tpu)}; `hackmatrix tpu delete {options.file}` ends it")
    return lines


def _init(tpu: Description, options: TpuOptions, gcloud: Gcloud) -> int:
    called = "hackmatrix tpu init"
    if failed := run_lines(called, options, gcloud, [commands.enable_services(tpu)]):
        return failed
    account = tpu.service_account
    if account is None:
        result = gcloud.run(commands.project_number(tpu))
        trouble = trouble_of_line(commands.project_number(tpu), result)
        if trouble is not None:
            return _fail(called, options, trouble)
        account = f"{result.out.strip() or 'NUMBER'}-compute@developer.gserviceaccount.com"
    for argv in commands.prepare(tpu, account):
        trouble = trouble_of_line(argv, gcloud.show(argv))
        if trouble is not None and trouble.error_type is not ErrorType.EXISTS:
            return _fail(called, options, trouble)
    return 0


def _set_up(tpu: Description, options: TpuOptions) -> Lines:
    return preparation.set_up(tpu, dry_run=options.dry_run)


def _update(tpu: Description, options: TpuOptions) -> Lines:
    return preparation.set_up(tpu, update=True, dry_run=options.dry_run)


def _quota(tpu: Description, options: TpuOptions, gcloud: Gcloud) -> int:
    argv = commands.quota(tpu)
    result = gcloud.run(argv)
    trouble = trouble_of_line(argv, result)
    if trouble is not None:
        return _fail("hackmatrix tpu quota", options, trouble)
    if not gcloud.dry_run:
        _say(quota_table(result.out))
    return 0


def _logs(tpu: Description, options: LogOptions) -> Lines:
    which = {"service": options.service, "follow": options.follow}
    return [commands.logs(tpu, options.lines, options.worker, **which)]


def _fetch(tpu: Description, options: FetchOptions) -> Lines:
    if not options.dry_run:
        (options.output / tpu.name).mkdir(parents=True, exist_ok=True)
    return [commands.fetch(tpu, options.output)]


def _images(tpu: Description, options: TpuOptions, gcloud: Gcloud) -> int:
    called = "hackmatrix tpu images"
    _say("TPU machines take no image of your own: a runtime, and packages from the bucket")
    failed = run_lines(called, options, gcloud, [commands.types(tpu), commands.runtimes(tpu)])
    if failed or tpu.bucket is None:
        return failed
    argv = commands.list_wheels(tpu)
    trouble = trouble_of_line(argv, gcloud.show(argv))
    if trouble is not None and trouble.error_type is not ErrorType.NOT_FOUND:
        return _fail(called, options, trouble)
    if trouble is not None:
        _say(f"{tpu.bucket}/wheels holds no packages")
    return 0


def _shell(tpu: Description, options: HostOptions, gcloud: Gcloud) -> int:
    worker = "0" if options.worker == "all" else options.worker
    return _at_terminal(options, gcloud, commands.ssh(tpu, None, worker))


def _attach(tpu: Description, options: TpuOptions, gcloud: Gcloud) -> int:
    _say("Ctrl-B, then D leaves the session and lets training go on; Ctrl-C would stop it")
    return _at_terminal(options, gcloud, commands.attach(tpu))


def _at_terminal(options: TpuOptions, gcloud: Gcloud, argv: commands.Argv) -> int:
    result = gcloud.show(argv, terminal=True)
    if result == NO_GCLOUD:
        return _fail("hackmatrix tpu", options, Trouble(ErrorType.NO_GCLOUD, ""))
    return result.code


def _train(tpu: Description, options: TpuOptions, gcloud: Gcloud) -> int:
    called = "hackmatrix tpu train"
    if gcloud.dry_run:
        return run_lines(called, options, gcloud, train(tpu, again=False))
    observed = look(tpu, gcloud, 0, _now())
    if observed.trouble is not None:
        return _fail(called, options, observed.trouble)
    if observed.hosts not in (Hosts.IDLE, Hosts.ENDED, Hosts.VANISHED):
        hint = "`hackmatrix tpu status FILE` says more"
        return _fail(
            called, options, f"the TPU is {observed.node}, its hosts: {observed.hosts}; {hint}"
        )
    again = observed.hosts is not Hosts.IDLE
    return run_lines(called, options, gcloud, train(tpu, again=again))


def _status(tpu: Description, options: TpuOptions, gcloud: Gcloud) -> int:
    if gcloud.dry_run:
        return run_lines("hackmatrix tpu status", options, gcloud, look_lines(tpu))
    observed = look(tpu, gcloud, 0, _now())
    if observed.trouble is not None:
        return _fail("hackmatrix tpu status", options, observed.trouble)
    driver = _driver(tpu, Path(), options, gcloud)
    for label, value in (
        ("request", observed.queue),
        ("TPU", f"{observed.node}, {tpu.slice.type} in {tpu.zone}"),
        ("hosts", observed.hosts),
        ("checkpoint", "none" if observed.run.checkpoint is None else observed.run.checkpoint),
        (
            "cost",
            driver.reminder(observed, TpuHistory()) if observed.created else price_in_words(tpu),
        ),
        ("next", advice_for(str(options.file), decide(observed, TpuHistory()).reason)),
    ):
        _say(f"{label:<12}{value}")
    return 0


def _run(tpu: Description, options: RunOptions, gcloud: Gcloud) -> int:
    driver = _driver(tpu, options.output, options, gcloud)
    _warn(tpu)
    if options.dry_run:
        rehearse(driver)
        return 0
    folder = preparation.folder_of(tpu)
    folder.mkdir(parents=True, exist_ok=True)
    memory = TpuHistory(options.retry, options.keep, options.delete_on_failure)
    try:
        with FileLock(folder / "run.lock", timeout=0):
            return driver.run(memory)
    except Timeout:
        raise UserError(f"another `hackmatrix tpu run` of {tpu.name} is under way here") from None
    except KeyboardInterrupt:
        _say("stopped looking; the TPU goes on, and costs")
        _say(f"  hackmatrix tpu run {options.file}      goes on here")
        _say(f"  hackmatrix tpu delete {options.file}   ends it")
        raise


def _delete(tpu: Description, options: TpuOptions, gcloud: Gcloud) -> int:
    direct = False
    if not gcloud.dry_run:
        seen = look(tpu, gcloud, 0, _now())
        direct = seen.trouble is None and seen.queue is Queue.ABSENT
    line = commands.delete(tpu) if direct else commands.delete_request(tpu)
    return run_lines("hackmatrix tpu delete", options, gcloud, [line])


def _driver(tpu: Description, folder: Path, options: TpuOptions, gcloud: Gcloud) -> Driver:
    return Driver(tpu, gcloud, folder, gcloud.say, sleep, _now, str(options.file))


def _warn(tpu: Description) -> None:
    for warning in tpu.warnings:
        _say(f"warning: {warning}")


def _fail(called: str, options: TpuOptions, trouble: Trouble | str) -> int:
    text = str(trouble)
    if isinstance(trouble, Trouble) and (advice := what_to_do(trouble.error_type)):
        text = f"{trouble}: {advice}"
    print(f"{called}: error: {advice_for(str(options.file), text)}", file=sys.stderr)
    return FAILED


def _say(line: str) -> None:
    print(line, flush=True)  # before what gcloud itself prints


def _now() -> datetime:
    return datetime.now().astimezone()


def _one(line: Callable[[Description], commands.Argv]) -> Callable[[Description, Any], Lines]:
    return lambda tpu, _: [line(tpu)]


SUBCOMMANDS = {
    "run": Subcommand(
        "Creates the TPU, trains, replaces a preempted TPU, fetches the run, deletes the TPU.",
        RunOptions,
        work=_run,
    ),
    "status": Subcommand("Shows the state of the TPU, and what `run` would do.", work=_status),
    "init": Subcommand("Enables the project's services and creates the bucket.", work=_init),
    "create": Subcommand("Requests the TPU.", CreateOptions, lines=_create),
    "setup": Subcommand("Sets up all hosts.", lines=_set_up),
    "update": Subcommand(
        "Updates the code on all hosts to the newest of the branch.", lines=_update
    ),
    "train": Subcommand("Starts training on all hosts, in tmux.", work=_train),
    "attach": Subcommand("Attaches to the first host's tmux session.", work=_attach),
    "logs": Subcommand("Prints the output of training.", LogOptions, lines=_logs),
    "ssh": Subcommand(
        "Opens a shell on a host; FILE -- COMMAND runs a command on all.", HostOptions, work=_shell
    ),
    "fetch": Subcommand("Copies the run to this machine.", FetchOptions, lines=_fetch),
    "list": Subcommand(
        "Lists TPUs and requests in the zone.", lines=lambda tpu, _: commands.list_all(tpu)
    ),
    "images": Subcommand(
        "Lists TPU types, runtimes, and packages cached for new hosts.", work=_images
    ),
    "quota": Subcommand("Lists the project's TPU quotas.", work=_quota),
    "stop": Subcommand("Stops an on-demand TPU; its disk stays.", lines=_one(commands.stop)),
    "start": Subcommand("Starts a stopped TPU.", lines=_one(commands.start)),
    "delete": Subcommand("Deletes the TPU and its request.", work=_delete),
}


# --- `hackmatrix tpu`: cloud TPUs, through Google's own gcloud ------------------------------------


_FILE = "my-tpu.yaml"


def main(argv: list[str]) -> int:
    """Runs the command."""
    name, *rest = argv or [""]
    if name in ("-h", "--help"):
        print(_help())
        return 0
    if name == "export":
        return _export(rest)
    if name not in SUBCOMMANDS:
        raise UserError(f"expected a subcommand, got {name!r}: see `hackmatrix tpu --help`")
    at = rest.index("--") if "--" in rest else len(rest)
    own, command_line = rest[:at], rest[at + 1 :]
    if command_line and name != "ssh":
        raise UserError("only `hackmatrix tpu ssh FILE -- COMMAND` takes words after --")
    command, called = SUBCOMMANDS[name], f"hackmatrix tpu {name}"
    tpu, options = _read(own, called, command)
    gcloud = Gcloud(lambda line: print(line, flush=True), options.dry_run)
    if command_line:
        return run_on_hosts(called, tpu, options, gcloud, command_line)
    if command.work is not None:
        return command.work(tpu, options, gcloud)
    assert command.lines is not None
    return run_lines(called, options, gcloud, command.lines(tpu, options))


def _read(argv: list[str], called: str, command: Subcommand) -> tuple[Description, Any]:
    """The description and the subcommand's options."""
    flags, explicit = parse_explicit(
        [options_of(Description), options_of(command.options)],
        argv,
        command=called,
        purpose=command.purpose,
        example=f"  {called} {_FILE}",
    )
    tpu = read_description(explicit["file"], flags)
    try:  # here, rather than on the TPU, minutes and dollars later
        tables = [OPTIONS, options_of(TrainOptions)]
        parse_explicit(
            tables, tpu.train_arguments, command="hackmatrix train", purpose="", example=""
        )
    except UserError as error:
        raise UserError(f"{explicit['file']}: train: {error}") from None
    return tpu, command.options(**explicit)


def _export(argv: list[str]) -> int:
    scheduler, *rest = argv or [""]
    usage = f"usage: hackmatrix tpu export {{{','.join(EXPORTS)}}} FILE"
    if scheduler in ("-h", "--help"):
        meanings = "\n".join(f"  {name:<9} {row.meaning}" for name, row in EXPORTS.items())
        print(f"{usage}\n\nPrints the training as a file for another scheduler:\n{meanings}")
        return 0
    if scheduler not in EXPORTS:
        raise UserError(f"expected one of {', '.join(EXPORTS)}, got {scheduler!r}; {usage}")
    purpose = f"Prints the training as {EXPORTS[scheduler].meaning}."
    tpu, _ = _read(rest, f"hackmatrix tpu export {scheduler}", Subcommand(purpose, TpuOptions))
    for warning in warnings(scheduler, tpu):
        print(f"warning: {warning}", file=sys.stderr)  # apart from the file
    print(export(scheduler, tpu), end="")
    return 0


def _help() -> str:
    width = max(map(len, SUBCOMMANDS))
    rows = [f"  {name:<{width}}  {command.purpose}" for name, command in SUBCOMMANDS.items()]
    rows.append(f"  {'export':<{width}}  Prints the training as a file for {', '.join(EXPORTS)}.")
    return "\n".join(
        [
            "usage: hackmatrix tpu COMMAND FILE [--dry-run] ...",
            "",
            "Cloud TPUs through gcloud; each command prints the gcloud lines that it runs.",
            "",
            *rows,
            "",
            "`hackmatrix tpu COMMAND --help` explains a command; all are in",
            "docs/tpu.md",
            "",
            "example:",
            f"  hackmatrix tpu run {_FILE} --dry-run",
        ]
    )
