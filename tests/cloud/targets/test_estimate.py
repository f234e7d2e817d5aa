"""Estimates of speed from compiled programs, and targets by name."""

import pytest

from hackmatrix.cli.main import main
from hackmatrix.cloud.targets.chips import CHIPS, target_of
from hackmatrix.cloud.targets.compiling import CompiledProgram
from hackmatrix.cloud.targets.estimate import COSTS, TargetReport
from hackmatrix.cloud.targets.hlo import HloEvent
from hackmatrix.core import imports
from hackmatrix.learning.settings.config import TrainConfig

GB = 10**9
EVENTS = [
    HloEvent("kernel", "fusion", "updates/while/rollout/undo", 100, 1_050, by_index=True, size=8),
    HloEvent("kernel", "fusion", "updates/while/learning", 10, 2_100, size=8),
    HloEvent("all-reduce", "all-reduce", "updates/while/learning", 10, size=90_000),
    HloEvent("choice", "while", "updates/while/rollout/undo", 5),
]


def report(target: str, memory: int = 4 * GB, num_envs: int = 1_024) -> TargetReport:
    config = TrainConfig.of(num_envs=num_envs, num_steps=100)
    update = CompiledProgram(1.0, memory, 0, 0, 2e12, [*EVENTS], ())
    step = CompiledProgram(1.0, memory, 0, 0, 0.0, EVENTS[:2], ())
    programs = {"environment step": step, "update": update}
    return TargetReport(
        target_of(target), config, "a.yaml", programs, {"jax": "0"}, {"step kernel": 12_500.0}
    )


@pytest.mark.parametrize(
    ("name", "chips", "grid"),
    [("v4-8", 4, "2x2x1"), ("v6e-8", 8, "2x4"), ("v4-64", 32, "2x4x4"), ("h200", 1, "1x1x1")],
)
def test_targets_by_name(name: str, chips: int, grid: str) -> None:
    found = target_of(name)
    assert (found.num_chips, found.grid, found.name) == (chips, grid, name)
    assert found.is_tpu == name.startswith("v")


def test_seconds_of_a_tpu_are_cycles_gathers_and_exchanges() -> None:
    gathers, moved = COSTS["likely"].by_index, 2 * 3 / 4 * 90_000 / (2 * CHIPS["v4"].link)
    seconds = 100 * (1e-6 + gathers) + 10 * 2e-6 + 10 * (COSTS["likely"].exchange + moved)
    assert report("v4-8").seconds("likely") == pytest.approx(seconds)
    assert report("v4-8").steps_per_second("likely") == pytest.approx(102_400 / seconds)
    assert report("v4-8").seconds("low") > seconds > report("v4-8").seconds("high")


def test_a_kernel_of_pallas_takes_the_operations_of_its_blocks() -> None:
    path = "updates/while/rollout/vmap()/step kernel/pallas_call"
    of_games = {1_024: 1, 8_192: 1, 32_768: 4}  # on four chips of two cores each
    for games, blocks in of_games.items():
        found = report("v4-8", num_envs=games)
        found.update.events[:] = [HloEvent("kernel", "custom-call", path, 100)]
        seconds = 100 * blocks * 12_500 / COSTS["likely"].operations / 1.05e9
        assert found.seconds("likely") == pytest.approx(seconds)
        assert found.parts()["step kernel"].kernels == 100
    assert "step kernel 12,500; 1.2 / 2.5 / 3.5 a cycle" in report("v4-8").text()


def test_one_chip_exchanges_nothing() -> None:
    alone = report("v4-8").seconds("likely", chips=1)
    assert alone == pytest.approx(100 * (1e-6 + COSTS["likely"].by_index) + 10 * 2e-6)
    rates = report("v4-8").by_chips()
    assert rates[1] == pytest.approx(25_600 / alone)
    assert 7 * rates[4] < rates[32] < 8 * rates[4]


def test_seconds_of_a_gpu_are_kernels_choices_and_products() -> None:
    costs, chip = COSTS["likely"], CHIPS["h100"]
    seconds = 110 * (costs.kernel + 3 * 8 / chip.bandwidth) + 5 * costs.choice
    seconds += 2e12 / (costs.products * chip.flops)
    assert report("h100").seconds("likely") == pytest.approx(seconds)


def test_parts_have_kernels_and_cycles() -> None:
    parts = report("v4-8").parts()
    assert {name: part[:2] for name, part in parts.items()} == {
        "undo": (100, 105_000),
        "learning": (10, 21_000),
    }


def test_chips_that_it_fits_and_the_largest_batch() -> None:
    large = report("v4-8", memory=20 * GB)
    assert large.fits() == ["v4", "v5p", "v6e", "h100", "h200"]
    assert large.most_games() == 256  # of 1,024 on four chips, a chip's 34 GB hold no more
    assert report("v4-8").most_games() == 2_048


def test_the_report_says_what_it_assumes_and_what_it_costs() -> None:
    text = report("v4-8").text()
    assert "10 / 2 / 0 us more for a kernel that gathers or scatters" in text
    assert "nothing was measured" in text
    assert "kernels a step: 110, of the environment by itself" in text
    assert "100M steps take 1 s (0 s to 1 s) and cost $0.00 on demand" in text
    assert "cost" not in report("h100").text()


def test_a_missing_compiler_is_one_line(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(imports, "find_spec", lambda _: None)
    assert main(["bench", "target", "v4-8"]) == 2
    needs = "needs libtpu: pip install 'hackmatrix[targets]'"
    assert capsys.readouterr() == ("", f"hackmatrix bench: error: {needs}\n")
