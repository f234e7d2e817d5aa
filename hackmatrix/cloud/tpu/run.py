"""`hackmatrix tpu run`: looks, decides, does; over and over until the run is here.

Nothing is kept on this machine: killed at any moment and started again, it looks and goes on.
"""

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from hackmatrix.cloud.tpu import gcloud_lines as commands
from hackmatrix.cloud.tpu import preparation
from hackmatrix.cloud.tpu.costs import describe_costs, price_in_words
from hackmatrix.cloud.tpu.decision import (
    Action,
    HistoryStep,
    TpuHistory,
    decide,
    ready_seconds,
    remember,
)
from hackmatrix.cloud.tpu.description import Description
from hackmatrix.cloud.tpu.gcloud import MINUTE, ErrorType, Gcloud, Trouble
from hackmatrix.cloud.tpu.hosts import train_command
from hackmatrix.cloud.tpu.job_files import train_arguments
from hackmatrix.cloud.tpu.probe import (
    Hosts,
    Observed,
    Queue,
    TpuNode,
    TpuRun,
    look,
    trouble_of_line,
)

_REMIND = 3600.0  # seconds between reminders that the TPU costs
PAUSE = 15.0  # seconds before the same is done again
_SET_UP_PATIENCE = 40 * MINUTE


@dataclass
class Driver:
    """Drives a TPU through a run.

    Attributes:
        tpu: what is wanted.
        gcloud: runs commands.
        folder: where runs go on this machine.
        say: prints a line.
        sleep: waits, in seconds.
        now: the time, with its zone.
        file: the description, for advice.
    """

    tpu: Description
    gcloud: Gcloud
    folder: Path
    say: Callable[[str], None]
    sleep: Callable[[float], None]
    now: Callable[[], datetime]
    file: str = "FILE"

    def run(self, memory: TpuHistory) -> int:
        """Goes on until the run is here or a person is needed; returns an exit code."""
        trouble: Trouble | None = None
        shown, printed_lines, reminded = "", 0, self.now()
        before: Action | None = None
        if (self.folder / self.tpu.name / _marker(self.tpu)).exists():
            memory = dataclasses.replace(memory, finished=True, fetched=True)
        while True:
            observed = look(self.tpu, self.gcloud, printed_lines, self.now())
            observed = (
                observed if observed.trouble else dataclasses.replace(observed, trouble=trouble)
            )
            printed_lines = self._follow(observed, printed_lines)
            step = decide(observed, memory)
            if step.reason != shown:
                self.say(f"{self.now():%H:%M} {advice_for(self.file, step.reason)}")
                shown = step.reason
            if step.failed and memory.delete_on_failure and memory.failure is None:
                trouble = None
                memory = dataclasses.replace(memory, failure=step._replace(failed=False))
                continue
            if step.action in (Action.DONE, Action.STOP):
                for line in step.last_words:
                    self.say(line)
                return step.code
            trouble = self.do(step, observed)
            memory = remember(memory, observed, step, trouble is None)
            if (self.now() - reminded).total_seconds() >= _REMIND:
                newest = dataclasses.replace(observed, trouble=trouble or observed.trouble)
                self.say(f"{self.now():%H:%M} {self.reminder(newest, memory)}")
                reminded = self.now()
            wait = step.wait or (PAUSE if step.action is before else 0)
            before = step.action
            if wait:
                self.sleep(wait)

    def do(self, step: HistoryStep, observed: Observed) -> Trouble | None:
        """Runs the command lines of a step; returns what went wrong."""
        if step.action is Action.WAIT:
            return None
        if step.action is Action.CREATE:
            self.say(f"it will cost {price_in_words(self.tpu)}")
        for argv in self.lines(step, observed):
            trouble = trouble_of_line(argv, self.gcloud.run(argv, timeout=_SET_UP_PATIENCE))
            # Google refuses to delete what it is deleting.
            gone = trouble is not None and trouble.error_type in (
                ErrorType.NOT_FOUND,
                ErrorType.INVALID,
            )
            if trouble is not None and not (gone and step.action is Action.DELETE):
                return trouble
        return None

    def lines(self, step: HistoryStep, observed: Observed) -> list[commands.Argv]:
        """The gcloud lines of a step."""
        tpu = self.tpu
        match step.action:
            case Action.CREATE:
                return preparation.create(tpu, dry_run=self.gcloud.dry_run)
            case Action.START:
                return [commands.start(tpu)]
            case Action.SET_UP:
                return preparation.set_up(tpu, dry_run=self.gcloud.dry_run)
            case Action.TRAIN:
                return train(tpu, again=observed.hosts is not Hosts.IDLE)
            case Action.RETRY:
                set_up = preparation.set_up(tpu, update=True, dry_run=self.gcloud.dry_run)
                return [*set_up, *train(tpu, again=True)]
            case Action.FETCH:
                if not self.gcloud.dry_run:
                    (self.folder / tpu.name).mkdir(parents=True, exist_ok=True)
                return [commands.fetch(tpu, self.folder)]
            case Action.DELETE if observed.queue is Queue.ABSENT:
                return [commands.delete(tpu)]
            case Action.DELETE:
                return [commands.delete_request(tpu)]
        return []

    def reminder(self, observed: Observed, memory: TpuHistory) -> str:
        """The TPU's state, its cost so far, and trouble if there is any."""
        matter = "" if observed.trouble is None else f"; {observed.trouble}"
        is_known = (
            observed.node is not TpuNode.ABSENT
        )  # else it may be there, and gcloud did not tell
        node = observed.node if is_known else memory.node
        if node is TpuNode.ABSENT:
            return f"still waiting for a TPU; it will cost {price_in_words(self.tpu)}{matter}"
        state = f"is {node}" if is_known else f"was {node} when gcloud last told"
        spent = describe_costs(
            self.tpu, ready_seconds(memory, observed) if is_known else memory.ready
        )
        ends = f"; end date {self.tpu.end_date}" if self.tpu.end_date else ""
        return f"this TPU {state}: {spent}{ends}{matter}"

    def _follow(self, observed: Observed, lines_printed: int) -> int:
        """Prints new lines of the log; returns the number of lines printed so far."""
        for line in observed.log.lines:
            self.say(f"| {line}")
        return (
            observed.log.next
            if observed.hosts not in (Hosts.UNSEEN, Hosts.UNREACHABLE)
            else lines_printed
        )


def advice_for(file: str, text: str) -> str:
    """Words with the user's own file in the commands that they recommend."""
    return text.replace(" FILE", f" {file}")


def train(tpu: Description, *, again: bool) -> list[commands.Argv]:
    """The lines that start training on all hosts, from the newest checkpoint if the run exists.

    Secrets are copied now: hosts that set themselves up have none.
    """
    marker = f"{commands.run_folder(tpu)}/{_marker(tpu)}"
    start = train_command(tpu.job, train_arguments(tpu), marker, again=again)
    return [*commands.copy_secrets(tpu), commands.ssh(tpu, start)]


def _marker(tpu: Description) -> str:
    """The file in the run's folder that says that this training is finished."""
    return f"tpu/finished-{tpu.job}"


def rehearse(driver: Driver) -> None:
    """Prints what a run does where all goes well, from nothing to a run that is here."""
    ready = Observed(queue=Queue.ACTIVE, node=TpuNode.READY)
    finished = TpuRun(exists=True, checkpoint=0, finished=True)
    memory = TpuHistory()
    for observed in (
        Observed(),
        dataclasses.replace(ready, hosts=Hosts.BARE),
        dataclasses.replace(ready, hosts=Hosts.IDLE),
        dataclasses.replace(ready, hosts=Hosts.ENDED, run=finished),
        dataclasses.replace(ready, hosts=Hosts.ENDED, run=finished),
        Observed(run=finished),
    ):
        step = decide(observed, memory)
        driver.say(f"# {step.reason}")
        driver.do(step, observed)
        memory = remember(memory, observed, step, succeeded=True)
