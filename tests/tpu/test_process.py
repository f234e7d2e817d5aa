"""How gcloud is run: what is printed, and commands that hang or are missing."""

from hackmatrix.tpu.process import NO_GCLOUD, Gcloud
from hackmatrix.tpu.troubles import TIMED_OUT


def test_each_line_is_printed_before_it_runs_and_looks_once() -> None:
    told: list[str] = []
    gcloud = Gcloud(told.append)
    for _ in range(2):
        gcloud.run(["echo", "a b"])
        gcloud.run(["true", "look"], quiet=True)
    assert told == ["$ echo 'a b'", "$ true look", "$ echo 'a b'"]


def test_output_and_exit_code() -> None:
    gcloud = Gcloud(lambda _: None)
    assert gcloud.run(["sh", "-c", "echo out; echo err >&2; exit 3"]) == (3, "out\n", "err\n")
    assert gcloud.show(["sh", "-c", "echo err >&2; exit 3"]) == (3, "", "err\n")


def test_a_command_that_hangs_is_ended() -> None:
    result = Gcloud(lambda _: None).run(["sleep", "60"], timeout=0.05)
    assert result == (TIMED_OUT, "", "ERROR: timed out after 0.05 s")


def test_a_command_that_is_not_there() -> None:
    gcloud = Gcloud(lambda _: None)
    assert gcloud.run(["no-such-gcloud"]) == NO_GCLOUD
    assert gcloud.show(["no-such-gcloud"]) == NO_GCLOUD


def test_a_dry_run_runs_nothing() -> None:
    told: list[str] = []
    gcloud = Gcloud(told.append, dry_run=True)
    assert gcloud.run(["no-such-gcloud"]).code == 0
    assert gcloud.show(["no-such-gcloud"]).code == 0
    assert told == ["$ no-such-gcloud"] * 2
