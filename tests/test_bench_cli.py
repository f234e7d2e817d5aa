"""`hackmatrix bench`: what it prints is what it measured."""

import json

import pytest

from hackmatrix.cli.main import main


def test_env_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", "env", "--num-envs", "8", "--num-steps", "2", "--json"]) == 0
    out, err = capsys.readouterr()
    figures = json.loads(out)
    assert err == ""
    assert figures["num_envs"] == 8
    assert figures["min"] <= figures["median"] <= figures["max"]
    assert figures["steps_per_second"] == figures["median"] > 0


def test_wrong_usage(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", "moon"]) == 2
    assert main(["bench", "env", "--repeats", "0"]) == 2
    assert "env" in capsys.readouterr().err
