"""`hackmatrix train` with gs:// paths: which folder here stands for which address in a bucket.

A run that goes to a bucket is trained in a folder here, `checkpoints/BUCKET/PATH`, and mirrored.
"""

import contextlib
import sys
from collections.abc import Iterator, Mapping
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from hackmatrix.core.errors import UserError
from hackmatrix.learning.settings.config import DEFAULT_FOLDER
from hackmatrix.runs.names import PICKLES, is_checkpoint_name, update_of_name
from hackmatrix.runs.storage.address import Address, is_address
from hackmatrix.runs.storage.bucket import FIRST_PATIENCE, PATIENCE, Bucket, Missing

if TYPE_CHECKING:
    from hackmatrix.learning.reporting.console import Console
    from hackmatrix.runs.buckets.lease import Lease
    from hackmatrix.runs.buckets.mirror import Mirror

Values = dict[str, Any]


class TrainBuckets(NamedTuple):
    """The buckets of a command line."""

    runs: Address | None = None  # the folder of runs, if it is in a bucket
    source: Address | None = None  # the run to resume, if it is in a bucket
    params: Address | None = None  # the file to start from, if it is in a bucket
    target: Address | None = None  # where this run goes, if to a bucket and its name is known
    folder: Path | None = None  # the folder of that run here
    goes_on: bool = False  # whether the target is the run that is resumed

    def __bool__(self) -> bool:
        return self != TrainBuckets()


def buckets_of(settings: Mapping[str, Any], options: Values) -> TrainBuckets:
    """The buckets of a command line; asks none of them.

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
        home, here = _home(Path(resume))
    if source is not None and "checkpoint_dir" not in settings:
        runs = source.parent
    resumed = source or home
    if resumed is not None and _goes_on(resumed, runs, settings, options):
        return TrainBuckets(runs, source, params, resumed, here or _here(resumed), goes_on=True)
    if (output := options.get("output_dir")) is not None:
        target = _address(output)
    else:
        target = _address_of_run(runs, options)
    return TrainBuckets(runs, source, params, target, None if target is None else _here(target))


def localise(buckets: TrainBuckets, flags: Values, options: Values) -> tuple[Values, Values]:
    """Flags and options with folders here in place of those in buckets; fetches nothing."""
    if buckets.runs is not None:
        flags = {**flags, "checkpoint_dir": _here(buckets.runs)}
    if (output := _address(options.get("output_dir"))) is not None:
        options = {**options, "output_dir": _here(output)}
    return flags, options


def resume_or_start(
    buckets: TrainBuckets, options: Values, runs: Path
) -> tuple[TrainBuckets, Values]:
    """With `--resume` if the run that is named exists, here or in its bucket.

    Args:
        buckets: the buckets of the command line.
        options: fields of `TrainOptions` that were given.
        runs: the folder of runs here.

    Raises:
        BucketError: the bucket can't be read, so nobody knows.
    """
    from hackmatrix.runs.folder import CONFIG

    if not options.get("resume_if_there"):
        return buckets, options
    name = "-".join(filter(None, (options.get("run_name"), options.get("run_suffix"))))
    folder, target = Path(options.get("output_dir") or runs / name), buckets.target
    is_there = target is not None and _open_bucket(target).find(CONFIG) is not None
    if not is_there and not (folder / CONFIG).exists():
        return buckets, options
    named = {"output_dir", "run_name", "run_suffix"}
    options = {key: value for key, value in options.items() if key not in named}
    if target is not None:
        buckets = buckets._replace(source=target if is_there else None, goes_on=True)
    return buckets, {**options, "resume_if_there": False, "resume": str(folder)}


def choose_name(buckets: TrainBuckets, options: Values) -> tuple[TrainBuckets, Values]:
    """Chooses a name for a new run that goes to a bucket, if none was given: free there and here.

    Raises:
        BucketError: the bucket can't be read.
    """
    if buckets.runs is None or buckets.target is not None or options.get("output_dir") is not None:
        return buckets, options
    from hackmatrix.runs.names import next_name

    here = _here(buckets.runs)
    taken_names = [path.name for path in here.iterdir()] if here.is_dir() else []
    name = next_name([*taken_names, *_open_bucket(buckets.runs).folders()], date.today())
    options = {**options, "run_name": name}
    target = _address_of_run(buckets.runs, options)
    assert target is not None
    return buckets._replace(target=target, folder=_here(target)), options


def fetch_source(buckets: TrainBuckets, options: Values) -> Values:
    """Fetches what is resumed, as far as the folder here has not gone on from it; see `settle`.

    Returns:
        Options that name it here.

    Raises:
        UserError: there is no such run or file; or the run has gone on both here and there.
        BucketError: it can't be read.
    """
    from hackmatrix.runs.buckets.cache import cache_folder, fetch
    from hackmatrix.runs.buckets.fetch import fetch_run, run_objects
    from hackmatrix.runs.buckets.reconcile import settle

    if buckets.params is not None:
        return {**options, "resume": str(fetch(buckets.params))}
    source, run = buckets.source, buckets.folder
    if buckets.goes_on and buckets.target is not None and run is not None:
        settle(
            _open_bucket(buckets.target),
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


@contextlib.contextmanager
def hold_lease(buckets: TrainBuckets) -> "Iterator[Lease | None]":
    """Context in which this process alone may write the run's folder in its bucket, if it has one.

    Raises:
        UserError: another process is training it, or it is there and is not to be resumed.
        BucketError: the bucket can't be written to.
    """
    if buckets.target is None:
        yield None
        return
    from hackmatrix.runs.buckets.lease import take_lease
    from hackmatrix.runs.folder import CONFIG

    if not buckets.goes_on and buckets.folder is not None and (buckets.folder / CONFIG).exists():
        raise UserError(
            f"the run {buckets.folder} exists: choose another --run-name, or "
            f"--resume {buckets.folder}"
        )
    bucket = _open_bucket(buckets.target)
    if not buckets.goes_on and bucket.find(CONFIG) is not None:
        raise UserError(
            f"the run {buckets.target} exists: choose another --run-name, or "
            f"--resume {buckets.target}"
        )
    lease = take_lease(bucket, _say)
    try:
        yield lease
    finally:
        lease.release()


@contextlib.contextmanager
def mirror_run(
    buckets: TrainBuckets, lease: "Lease | None", console: "Console", *, rewinds: bool
) -> "Iterator[Mirror | None]":
    """Context in which the run's folder is mirrored to its bucket, if it has one."""
    if buckets.target is None or buckets.folder is None or lease is None:
        yield None
        return
    from hackmatrix.runs.buckets.mirror import Mirror

    console.say(f"what is in {buckets.folder} is mirrored to {buckets.target}")
    bucket = Bucket(buckets.target, PATIENCE)
    mirror = Mirror(buckets.folder, bucket, lease, console.say, console.warn, rewinds=rewinds)
    with mirror:
        yield mirror


def _address(path: Any) -> Address | None:
    return Address.of(path) if is_address(path) else None


def _here(address: Address) -> Path:
    """The folder here that stands for one in a bucket."""
    return address.below(DEFAULT_FOLDER)


def _is_params(path: str) -> bool:
    return path.endswith((".npz", *PICKLES)) and not is_checkpoint_name(Path(path).name)


def _run_of(named: Address) -> Address:
    """The run that an address of a run, of its checkpoints or of one of them means."""
    if named.name == "checkpoints" or is_checkpoint_name(named.name):
        return named.parent
    return named.parent.parent if named.parent.name == "checkpoints" else named


def _update_in(resume: str | None) -> int | None:
    """The update of the checkpoint that `--resume` names; None if it names a run."""
    folder, _, name = (resume or "").rstrip("/").rpartition("/")
    if folder.endswith("checkpoints") and name.isdecimal():
        return int(name)
    return update_of_name(name)


def _home(resume: Path) -> tuple[Address | None, Path | None]:
    """The bucket that a run here goes to, and its folder."""
    from hackmatrix.runs.buckets.bucket_file import home_of

    is_name = is_checkpoint_name(resume.name) and not resume.exists()
    run = resume.parent if is_name or resume.name == "checkpoints" else resume
    run = run.parent.parent if run.parent.name == "checkpoints" else run
    home = home_of(run)
    return home, None if home is None else run


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
