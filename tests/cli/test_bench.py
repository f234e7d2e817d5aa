"""The command `hackmatrix bench`: help and usage errors."""

import pytest

from hackmatrix.cli.bench import BENCHMARKS, measure_of
from hackmatrix.cli.main import main


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["moon"], "no benchmark is called 'moon'; there are env, "),
        (["memroy"], "did you mean memory?"),
        (["env", "--repeats", "0"], "--repeats: must be at least 1, got 0"),
        (["env", "--play", "easy"], "--play: must be one of random, harder, got 'easy'"),
        (["env", "--num-env", "8"], "did you mean --num-envs?"),
        (["target", "v9-8"], "target 'v9-8': expected h100, h200 or a TPU"),
        (["target", "v3-8"], "target v3-8: nothing compiles for v3; there are h100, "),
    ],
)
def test_wrong_usage_is_one_line(
    capsys: pytest.CaptureFixture[str], argv: list[str], message: str
) -> None:
    assert main(["bench", *argv]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert message in err
    assert err.count("\n") == 1


@pytest.mark.parametrize("argv", [[], ["--help"]])
def test_help_lists_all(capsys: pytest.CaptureFixture[str], argv: list[str]) -> None:
    assert main(["bench", *argv]) == 0
    out = capsys.readouterr().out
    assert all(f"  {name} " in out and bench.help in out for name, bench in BENCHMARKS.items())


@pytest.mark.parametrize("name", BENCHMARKS)
def test_help_of_each_has_an_example(capsys: pytest.CaptureFixture[str], name: str) -> None:
    with pytest.raises(SystemExit):
        main(["bench", name, "--help"])
    assert f"hackmatrix bench {name}" in capsys.readouterr().out.split("example:")[1].split("\n")[1]


@pytest.mark.parametrize("name", BENCHMARKS)
def test_each_takes_the_options_of_the_command(name: str) -> None:
    assert measure_of(name).__annotations__["options"] is BENCHMARKS[name].options
