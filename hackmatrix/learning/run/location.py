"""Where a run goes, and where it starts: folders here, which may stand for some in a bucket.

A run that goes to a bucket is trained in a folder here, `checkpoints/BUCKET/PATH`, and mirrored.
"""

import contextlib
import sys
from collections.abc import Callable, Iterator, Mapping
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Self, TypeVar

from hackmatrix.core.errors import UserError
from hackmatrix.learning.settings.config import DEFAULT_FOLDER, TrainOptions
from hackmatrix.runs.bucket import FIRST_PATIENCE, PATIENCE, Address, Bucket, Missing, is_address
from hackmatrix.runs.names import PICKLES, is_checkpoint_name, next_name, update_of_name

if TYPE_CHECKING:
    from hackmatrix.learning.reporting.console import Console
    from hackmatrix.learning.run.start import Start
    from hackmatrix.runs.buckets.lease import Lease
    from hackmatrix.runs.buckets.mirror import Mirror

Values = dict[str, Any]
Fetch = Callable[[str, Path], Path]  # of a run that is not here: (id, folder) -> folder
AddressOrPath = TypeVar("AddressOrPath", Address, Path)


class RunLocation(NamedTuple):
    """The folder of a run, and what it resumes, as far as a command line says it."""

    runs: Address | None = None  # the folder of runs, if it is in a bucket
    source: Address | None = None  # the run to resume, if it is in a bucket
    params: Address | None = None  # the file to start from, if it is in a bucket
    target: Address | None = None  # where this run goes, if to a bucket and its name is known
    folder: Path | None = None  # the folder of that run here
    goes_on: bool = False  # whether the target is the run that is resumed

    @classmethod
    def of(cls, settings: Mapping[str, Any], options: Values) -> Self:
        """Reads a command line; asks no bucket.

        Args:
            settings: settings of `TrainConfig` from flags and file.
            options: fields of `TrainOptions` that were given.

        Raises:
            UserError: an address has the wrong form.
        """
        runs, resume = _address(settings.get("checkpoint_dir")), options.get("resume")
        source = params = home = here = None
        if runs is not None and options.get("resume_run"):
            source = runs / options["resume_run"]
        elif (named := _address(resume)) is not None:
            source, params = (None, named) if _is_params(named.path) else (_run_of(named), None)
        elif resume and not _is_params(resume):
            from hackmatrix.runs.buckets.plan import home_of
            from hackmatrix.runs.folder import HOME

            here = Path(resume) if Path(resume, HOME).exists() else _run_of(Path(resume))
            home = home_of(here)
        if source is not None and "checkpoint_dir" not in settings:
            runs = source.parent
        resumed = source or home
        if resumed is not None and _goes_on(resumed, runs, settings, options):
            folder = here if home is not None else _here(resumed)
            return cls(runs, source, params, resumed, folder, goes_on=True)
        if (output := options.get("output_dir")) is not None:
            target = _address(output)
        else:
            target = _address_of_run(runs, options)
        return cls(runs, source, params, target, None if target is None else _here(target))

    def localise(self, flags: Values, options: Values) -> tuple[Values, Values]:
        """Flags and options with folders here in place of those in buckets; fetches nothing."""
        if self.runs is not None:
            flags = {**flags, "checkpoint_dir": _here(self.runs)}
        if (output := _address(options.get("output_dir"))) is not None:
            options = {**options, "output_dir": _here(output)}
        return flags, options

    @contextlib.contextmanager
    def open(
        self, options: Values, runs: Path, fetch: Fetch | None = None, *, trains: bool = True
    ) -> "Iterator[OpenRun]":
        """Context in which the run is here, and this process alone may write it in its bucket.

        Args:
            options: fields of `TrainOptions` that were given.
            runs: the folder of runs here.
            fetch: downloads a run from elsewhere, see `find_start`.
            trains: whether the run is to be written too.

        Raises:
            UserError: there is no such run or file; another process is training it; it is there and
                is not to be resumed; or it has gone on both here and in its bucket.
            BucketError: the bucket can't be read, or written to.
        """
        from hackmatrix.learning.run.start import find_start

        location, options = self._find_existing(options, runs)
        if trains:
            location, options = location._choose_name(options)
        else:
            location = location._replace(target=None, goes_on=False)
        with contextlib.ExitStack() as stack:
            lease = None
            if location.target is not None:
                lease = location._take_lease(location.target)
                stack.callback(lease.release)
            chosen = TrainOptions(**location._fetch(options))
            start = find_start(chosen, runs, fetch)
            yield OpenRun(chosen, start, location.folder, location.target, lease)

    def _find_existing(self, options: Values, runs: Path) -> tuple[Self, Values]:
        """With `--resume` if it is to be resumed if it exists, and does, here or in its bucket."""
        from hackmatrix.runs.folder import CONFIG

        if not options.get("resume_if_there"):
            return self, options
        name = "-".join(filter(None, (options.get("run_name"), options.get("run_suffix"))))
        folder, target = Path(options.get("output_dir") or runs / name), self.target
        is_there = target is not None and _open_bucket(target).find(CONFIG) is not None
        if not is_there and not (folder / CONFIG).exists():
            return self, options
        named = {"output_dir", "run_name", "run_suffix"}
        options = {key: value for key, value in options.items() if key not in named}
        options |= {"resume_if_there": False, "resume": str(folder)}
        if target is None:
            return self, options
        return self._replace(source=target if is_there else None, goes_on=True), options

    def _choose_name(self, options: Values) -> tuple[Self, Values]:
        """With a name that is free there and here, if a new run goes to a bucket without one."""
        is_named = self.target is not None or options.get("output_dir") is not None
        if self.runs is None or is_named:
            return self, options
        here = _here(self.runs)
        taken_names = [path.name for path in here.iterdir()] if here.is_dir() else []
        name = next_name([*taken_names, *_open_bucket(self.runs).folders()], date.today())
        target = self.runs / "-".join(filter(None, (name, options.get("run_suffix"))))
        location = self._replace(target=target, folder=_here(target))
        return location, {**options, "run_name": name}

    def _take_lease(self, target: Address) -> "Lease":
        from hackmatrix.runs.buckets.lease import take_lease
        from hackmatrix.runs.folder import CONFIG

        bucket = _open_bucket(target)
        if not self.goes_on:
            is_here = self.folder is not None and (self.folder / CONFIG).exists()
            if is_here or bucket.find(CONFIG) is not None:
                run = self.folder if is_here else target
                raise UserError(
                    f"the run {run} exists: choose another --run-name, or --resume {run}"
                )
        return take_lease(bucket, _say)

    def _fetch(self, options: Values) -> Values:
        """Fetches what is resumed, as far as the folder here has not gone on from it; see `settle`.

        Returns:
            Options that name it here.
        """
        from hackmatrix.runs.buckets.cache import cache_folder, fetch
        from hackmatrix.runs.buckets.fetch import fetch_run, run_objects
        from hackmatrix.runs.buckets.reconcile import settle

        if self.params is not None:
            return {**options, "resume": str(fetch(self.params))}
        source, run = self.source, self.folder
        if self.goes_on and self.target is not None and run is not None:
            settle(
                _open_bucket(self.target),
                run,
                _say,
                is_folder_named=source is None,
                rewind=bool(options.get("rewind")),
                update=_update_in(options.get("resume")),
            )
        elif source is not None:
            run, bucket = source.below(cache_folder()), _open_bucket(source)
            fetch_run(bucket, run_objects(bucket), run, _say)
        if source is None:
            return options
        named = _address(options.get("resume")) or source
        within = named.path.removeprefix(source.path)  # which checkpoint
        return {**options, "resume_run": None, "resume": str(run) + within}


class OpenRun(NamedTuple):
    """A run whose location is open."""

    options: TrainOptions  # they name folders here
    start: "Start"
    folder: Path | None  # that is mirrored
    target: Address | None  # the folder in a bucket to which it is
    lease: "Lease | None"  # of that one

    @contextlib.contextmanager
    def mirror(self, console: "Console") -> "Iterator[Mirror | None]":
        """Context in which the run's folder is mirrored to its bucket, if it has one."""
        if self.target is None or self.folder is None or self.lease is None:
            yield None
            return
        from hackmatrix.runs.buckets.mirror import Mirror

        console.say(f"what is in {self.folder} is mirrored to {self.target}")
        bucket, rewinds = Bucket(self.target, PATIENCE), self.options.rewind
        say, warn = console.say, console.warn
        with Mirror(self.folder, bucket, self.lease, say, warn, rewinds=rewinds) as mirror:
            yield mirror


def _address(path: Any) -> Address | None:
    return Address.of(path) if is_address(path) else None


def _here(address: Address) -> Path:
    """The folder here that stands for one in a bucket."""
    return address.below(DEFAULT_FOLDER)


def _is_params(path: str) -> bool:
    return path.endswith((".npz", *PICKLES)) and not is_checkpoint_name(Path(path).name)


def _run_of(named: AddressOrPath) -> AddressOrPath:
    """The run that a path of a run, of its checkpoints or of one of them means."""
    if named.name == "checkpoints" or is_checkpoint_name(named.name):
        return named.parent
    return named.parent.parent if named.parent.name == "checkpoints" else named


def _update_in(resume: str | None) -> int | None:
    """The update of the checkpoint that `--resume` names; None if it names a run."""
    folder, _, name = (resume or "").rstrip("/").rpartition("/")
    if folder.endswith("checkpoints") and name.isdecimal():
        return int(name)
    return update_of_name(name)


def _goes_on(
    resumed: Address, runs: Address | None, settings: Mapping[str, Any], options: Values
) -> bool:
    """Whether the run that is resumed goes on in its own folder; see `open_run_folder`."""
    if options.get("run_suffix"):
        return False
    if (output := options.get("output_dir")) is not None:
        return _address(output) == resumed
    if (name := options.get("run_name")) is None:
        return True
    is_elsewhere = runs is None and "checkpoint_dir" in settings
    return not is_elsewhere and (runs or resumed.parent) / name == resumed


def _address_of_run(runs: Address | None, options: Values) -> Address | None:
    """Where a run of a given name goes; None if it has none, or goes to no bucket."""
    name, suffix = options.get("run_name"), options.get("run_suffix")
    if runs is None or name is None:
        return None
    return runs / (f"{name}-{suffix}" if suffix else name)


def _open_bucket(address: Address) -> Bucket:
    """A bucket that has answered; an error of one line comes within seconds.

    Raises:
        UserError: there is no such bucket.
        BucketError: it does not answer, or refuses.
    """
    from hackmatrix.runs.folder import CONFIG

    bucket = Bucket(address, FIRST_PATIENCE)
    try:
        bucket.objects(CONFIG)
    except Missing:
        raise UserError(f"gs://{address.bucket}: there is no such bucket") from None
    bucket.patience = PATIENCE
    return bucket


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)
