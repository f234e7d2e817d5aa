"""The monitor's page in a real browser: live, with one cursor, and for everybody."""

from collections.abc import Iterator
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from axe_playwright_python.sync_playwright import Axe
from browser import opened, served
from monitored_runs import append, lines_of, row_of, save_agent, write_run
from PIL import Image

RETURN = "[data-metric='train/mean_episode_return']"
KL = "[data-metric='train/approx_kl']"
SERIOUS = ("serious", "critical")


def rows(seed: int, last: int = 400) -> list[dict[str, Any]]:
    rng = np.random.default_rng(seed)
    made = [
        row_of(
            update,
            mean_episode_return=update / 40 + rng.normal(),
            approx_kl=0.05 + update / 10_000,
            **{"stats/win_rate": update / 1000},
        )
        for update in range(10, last + 1, 10)
    ]
    made[-1]["alarms"] = ["kl_too_high"]
    return made


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs")
    for seed in (0, 1):
        run = write_run(folder / f"best-{seed}", rows(seed), updates=500, seed=seed)
        save_agent(run, 200)
    write_run(folder / "other", rows(2, 300), updates=500, lr=0.1)
    return folder


@pytest.fixture(scope="module")
def address(folder: Path) -> Iterator[str]:
    runs = [str(folder / name) for name in ("best-0", "best-1", "other")]
    with served("monitor", *runs, "--page", "--refresh-interval", "60") as it:
        yield it


def said(page: Any, plot: str) -> str:
    label: str = page.get_attribute(f"{plot} .picture", "aria-label")
    return label


def cursors(page: Any) -> set[str]:
    """Where the cursors of the plots in sight are."""
    return set(
        page.evaluate(
            "[...document.querySelectorAll('.card:has(canvas) .u-cursor-x')]"
            ".map((line) => line.style.transform)"
        )
    )


def test_curves_bands_and_lists_of_the_runs_are_shown(browser: Any, address: str) -> None:
    with opened(browser, address) as page:
        assert page.locator("#runs label").all_inner_texts() == ["best-*\n2 seeds", "other"]
        assert "kl too high" in page.inner_text("#alarms")
        picture = Image.open(BytesIO(page.locator(f"{RETURN} canvas").screenshot())).convert("RGB")
        colours = np.asarray(picture).reshape(-1, 3).astype(int)
        for drawn in [(0x4F, 0xE3, 0xC1), (0xFF, 0xD2, 0x5E)]:  # of the two groups
            assert (np.abs(colours - drawn).max(axis=1) < 12).sum() > 30
        page.uncheck("#runs li:nth-child(2) input")
        assert "other" not in said(page, RETURN)
        page.check("#runs li:nth-child(2) input")
        page.fill("#filter", "win")
        assert page.locator(".card:visible").count() == 1


def test_one_cursor_is_over_all_plots_and_leads_to_a_checkpoint(browser: Any, address: str) -> None:
    with opened(browser, address) as page:
        box = page.locator(f"{RETURN} .u-over").bounding_box()
        page.mouse.move(box["x"] + box["width"] / 2, box["y"] + 20)
        page.wait_for_function("() => monitor.view.cursor !== null")
        assert page.inner_text("#where") == "step 200,000"
        assert len(cursors(page)) == 1
        assert "-10px" not in next(iter(cursors(page)))
        page.mouse.move(0, 0)
        page.focus("#cursor")
        page.keyboard.press("Home")
        page.wait_for_function("() => monitor.view.cursor === 0")
        page.click("#watch-here")
        assert page.input_value("#command").startswith("hackmatrix watch /")
        assert page.input_value("#command").endswith("params_200.npz")
        page.keyboard.press("Escape")
        page.click("#alarms button")
        page.wait_for_function("() => monitor.view.cursor === 400000")


def test_a_part_is_chosen_by_dragging(browser: Any, address: str) -> None:
    with opened(browser, address) as page:
        box = page.locator(f"{RETURN} .u-over").bounding_box()
        page.mouse.move(box["x"] + 50, box["y"] + 20)
        page.mouse.down()
        page.mouse.move(box["x"] + 150, box["y"] + 20, steps=4)
        page.mouse.up()
        page.wait_for_function("() => monitor.view.zoom !== null")
        low, high = page.evaluate("monitor.view.zoom")
        assert high - low == pytest.approx(400_000 * 100 / box["width"], rel=0.05)
        page.click("#reset")
        assert page.evaluate("monitor.view.zoom") is None


def test_a_run_is_followed_while_it_is_written_and_rewound(browser: Any, tmp_path: Path) -> None:
    run = write_run(tmp_path / "live")
    with (
        served("monitor", str(run), "--page", "--refresh-interval", "0.2") as address,
        opened(browser, address) as page,
    ):
        assert "No metrics yet" in page.inner_text("#empty")
        append(run, *rows(3, 50), row_of(60, mean_episode_return=77.0))
        page.wait_for_selector(f"{RETURN} [aria-label='return: live 77']")
        with (run / "metrics.jsonl").open("ab") as file:
            file.write(lines_of([row_of(70, mean_episode_return=78.0)])[:-9])  # half a line
        partial = run / "partial"
        partial.write_bytes(lines_of([*rows(3, 20)[:2], row_of(30, mean_episode_return=5.0)]))
        partial.replace(run / "metrics.jsonl")
        page.wait_for_selector(f"{RETURN} [aria-label='return: live 5']")
        assert page.inner_text("#where") == "last: step 30,000"


def test_the_page_is_for_everybody(browser: Any, address: str) -> None:
    with opened(browser, address) as page:
        found = Axe().run(page).response["violations"]
        assert [each["id"] for each in found if each["impact"] in SERIOUS] == []


def test_eight_groups_are_all_told_sorted_and_for_everybody(browser: Any, tmp_path: Path) -> None:
    for number in range(8):
        write_run(tmp_path / f"run{number}", rows(number, 100), updates=500, lr=0.1 * number)
    with served("monitor", str(tmp_path), "--page") as it, opened(browser, it) as page:
        page.wait_for_function(
            "(plot) => document.querySelectorAll(`${plot} .values button`).length === 8", arg=RETURN
        )
        page.click("#settings summary")
        assert Axe().run(page).response["violations"] == []
        page.click("#settings button:has-text('lr')")
        column = page.locator("#settings tr td:last-child").all_inner_texts()
        values = [float(text) for text in column if text]
        assert values == sorted(values)
        page.click("#settings button:has-text('lr')")
        again = page.locator("#settings tr td:last-child").all_inner_texts()
        assert [float(text) for text in again if text] == values[::-1]
        page.hover("#runs li >> nth=2")
        assert page.evaluate("() => monitor.view.pointed") == 2


def test_a_checkpoint_is_watched_in_the_page(browser: Any, address: str) -> None:
    with opened(browser, address) as page:
        page.click("#checkpoints button >> nth=0")
        with page.context.expect_page() as opening:
            page.click("#watch-page")
        watched = opening.value
        watched.wait_for_selector("body[data-ready]")
        watched.keyboard.press("Enter")
        watched.wait_for_function("() => hackmatrix.game.nodes.length === 2")
        assert watched.title() == "HackMatrix: watch"
        wrong = watched.request.get(f"{address}played/0123456789abcdef/")
        assert wrong.status == 404
        assert "no such agent" in wrong.text()


def test_a_phone_has_it_all(browser: Any, address: str) -> None:
    size = {"width": 320, "height": 640}
    with opened(browser, address, viewport=size, has_touch=True, is_mobile=True) as page:
        page.locator(f"{KL} canvas").scroll_into_view_if_needed()
        box = page.locator(f"{KL} .u-over").bounding_box()
        page.touchscreen.tap(box["x"] + 60, box["y"] + 30)
        page.wait_for_function("() => monitor.view.cursor !== null")
        assert page.evaluate("document.scrollingElement.scrollWidth") <= 320
