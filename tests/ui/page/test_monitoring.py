"""The monitor's page in a real browser: live, with one cursor, and for everybody."""

import os
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from browser import opened, served
from monitored_runs import append, lines_of, row_of, save_player, write_run
from page_views import PHONE, TOO_SMALL, TOUCH, violations
from PIL import Image

pytestmark = pytest.mark.thorough

RETURN = "[data-metric='train/mean_episode_return']"
KL = "[data-metric='train/approx_kl']"
BACKGROUND = "getComputedStyle(document.body).backgroundColor"


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
        for update, noise in ((200, 1.0), (400, 0.0)):
            save_player(run, update, noise)
    write_run(folder / "other", rows(2, 300), updates=500, lr=0.1)
    return folder


@pytest.fixture(scope="module")
def address(folder: Path) -> Iterator[str]:
    runs = [str(folder / name) for name in ("best-0", "best-1", "other")]
    with served("monitor", *runs, "--page", "--refresh-interval", "60") as it:
        yield it


@pytest.fixture(scope="module")
def monitor(browser: Any, address: str) -> Iterator[Any]:
    with opened(browser, address) as page:
        yield page


@pytest.fixture
def page(monitor: Any) -> Any:
    """A tab that tests share."""
    monitor.evaluate("scrollTo(0, 0)")
    monitor.mouse.move(0, 0)
    return monitor


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


def test_curves_bands_and_lists_of_the_runs_are_shown(page: Any) -> None:
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
    page.fill("#filter", "")
    assert violations(page) == []
    assert page.evaluate(BACKGROUND) == "rgb(10, 13, 19)"


def test_one_cursor_is_over_all_plots_and_leads_to_a_checkpoint(page: Any) -> None:
    box = page.locator(f"{RETURN} .u-over").bounding_box()
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + 20)
    page.wait_for_function("() => monitor.view.cursor === 200000")
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


def test_a_part_is_chosen_by_dragging(page: Any) -> None:
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


@pytest.fixture(scope="module")
def mixed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Eight runs of two environments, the returns of one a hundred times those of the other."""
    folder = tmp_path_factory.mktemp("mixed")
    for number in range(8):
        env, scale = (("CartPole-v1", 100), ("HackMatrix", 1))[number % 2]
        made = [
            row | {"train/mean_episode_return": scale * row["train/mean_episode_return"]}
            for row in rows(number, 100)
        ]
        wide = {f"setting_number_{i}": number for i in range(20)}  # a table wider than the page
        write_run(folder / f"run-{number}", made, env=env, lr=10.0**-number, **wide)
    with served("monitor", str(folder), "--page", "--refresh-interval", "60") as it:
        yield it


def test_each_environment_has_its_own_axis_and_dashes(browser: Any, mixed: str) -> None:
    with opened(browser, mixed) as page:
        page.locator(f"{RETURN} canvas").wait_for()
        ranges = page.evaluate("monitor.rangesOf('train/mean_episode_return')")
        tops = {name.split(" ")[1]: high for name, (_, high) in ranges.items()}
        assert tops["CartPole-v1"] > 20 * tops["HackMatrix"]
        assert [*page.evaluate("monitor.rangesOf('train/approx_kl')")] == ["y"]  # one healthy range
        labels = page.locator("#runs label").all_inner_texts()
        dashed = page.locator("#runs label .swatch.dashed").count()
        assert sum("CartPole" in label for label in labels) == dashed == 4
        page.click("#settings summary")
        last = page.locator(".card:visible").evaluate_all(
            "(cards) => Math.max(...cards.map((card) => card.getBoundingClientRect().right))"
        )
        assert last <= page.viewport_size["width"]


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Eight groups of three runs that are shown, and one run that is too many."""
    folder = tmp_path_factory.mktemp("many")
    for seed in (0, 1, 2):
        for number in range(8):
            run = write_run(
                folder / f"r{number}-{seed}", rows(number, 100), seed=seed, lr=10.0**-number
            )
            append(
                run, row_of(110, grad_norm=1.0, steps_per_second=9.0), row_of(120, grad_norm=None)
            )
    old = write_run(folder / "old", rows(9, 100), lr=7)
    for path in old.iterdir():
        os.utime(path, (0, 0))
    with served("monitor", str(folder), "--page", "--refresh-interval", "0.5") as it:
        yield it


def test_eight_groups_are_told_whole_and_to_everybody(browser: Any, many: str) -> None:
    for options in ({}, {**PHONE, "color_scheme": "light"}):
        with opened(browser, many, **options) as page:
            assert (page.evaluate(BACKGROUND) == "rgb(10, 13, 19)") == (not options)
            values = page.locator(f"{RETURN} .values button")
            values.nth(7).wait_for()
            card = page.locator(RETURN).bounding_box()
            for box in (values.nth(i).bounding_box() for i in range(8)):
                assert box["x"] >= card["x"]
                assert box["x"] + box["width"] <= card["x"] + card["width"]
            page.click("#settings summary")
            width = page.viewport_size["width"]
            assert page.evaluate("document.scrollingElement.scrollWidth") <= width
            if options:
                assert violations(page) == []
                assert page.evaluate(TOO_SMALL) == []


def test_runs_are_folded_and_nan_is_an_alarm(browser: Any, many: str) -> None:
    with opened(browser, many) as page:
        assert "24 of 25 runs are shown" in page.inner_text("#runs-panel summary >> nth=0")
        assert page.locator("#runs .run:visible").count() == 0
        page.click("#runs summary >> nth=2")
        page.wait_for_function("() => document.querySelector('#runs details[open]')")
        assert page.locator("#runs .run:visible").count() == 3
        first = page.inner_text(".card h3 button >> nth=0")
        assert first == "return"
        assert page.inner_text("#alarm-count") == "48"  # KL of the 24, and what is not finite
        norm = "[data-metric='train/grad_norm']"
        page.locator(norm).scroll_into_view_if_needed()
        page.wait_for_selector(f"{norm}.critical canvas")
        assert page.locator(f"{norm} .values button").all_inner_texts() == ["NaN"] * 8


def test_settings_are_sorted_and_a_group_is_isolated(browser: Any, many: str) -> None:
    with opened(browser, many) as page:
        page.click("#settings summary")
        for turn in (1, -1):
            page.click("#settings button:has-text('lr')")
            column = page.locator("#settings tr td:last-child").all_inner_texts()
            assert [float(text) for text in column][::turn] == [10.0**-i for i in range(7, -1, -1)]
        page.mouse.move(0, 0)
        plain = page.locator(f"{RETURN} canvas").screenshot()
        page.hover("#runs li >> nth=2")
        page.wait_for_function("() => monitor.view.pointed === 2")
        pointed = page.locator(f"{RETURN} canvas").screenshot()
        assert len(colours_in(pointed)) < len(colours_in(plain)) / 2
        page.mouse.move(0, 0)
        page.wait_for_function("() => monitor.view.pointed === null")
        page.focus("#rows")
        for _ in range(40):
            page.keyboard.press("Tab")
            if page.evaluate("document.activeElement.closest('#runs li') !== null"):
                break
        page.wait_for_function("() => monitor.view.pointed === 0")


def colours_in(picture: bytes) -> set[tuple[int, ...]]:
    """The strong colours of a picture, roughly."""
    pixels = np.asarray(Image.open(BytesIO(picture)).convert("RGB")).reshape(-1, 3).astype(int)
    strong = pixels[np.ptp(pixels, axis=1) > 100]
    return {tuple(colour) for colour in strong // 32}


def test_a_click_on_a_checkpoint_in_a_plot_plays_it(page: Any) -> None:
    box = page.locator(f"{RETURN} .u-over").bounding_box()
    middle = box["x"] + box["width"] / 2  # step 200,000
    with page.context.expect_page() as opening:
        page.mouse.click(middle, box["y"] + box["height"] - 5)
    watched = opening.value
    watched.set_default_timeout(240_000)
    watched.wait_for_selector("body[data-ready]")
    assert watched.input_value("#controls") == "params_200"
    watched.keyboard.press("Enter")
    watched.wait_for_function("() => hackmatrix.game.nodes.length === 2")
    page.mouse.click(middle, box["y"] + 20)
    page.wait_for_function("() => monitor.view.cursor === 200000")
    assert len(page.context.pages) == 2


def test_checkpoints_of_a_run_play_side_by_side(browser: Any, address: str) -> None:
    with opened(browser, address) as page:
        page.click("#checkpoints button >> nth=0")
        with page.context.expect_page() as opening:
            page.click("#watch-grown")
        grown = opening.value
        grown.set_default_timeout(240_000)
        grown.wait_for_selector("body[data-ready]")
        assert grown.inner_text("#whose") == "How best-0 grew up"
        names = grown.locator("#grown a").all_inner_texts()
        assert names == ["update 200", "update 400"]
        for step, ends in (("0", 0), (grown.get_attribute("#step", "max"), 2)):
            grown.fill("#step", step)
            grown.wait_for_function(
                "() => [...document.images].every((each) => each.complete && each.naturalWidth)"
            )
            words = grown.locator("#grown figcaption").all_inner_texts()
            assert sum(" at step " in each for each in words) == ends
        assert "wins" in words[1]
        grown.fill("#step", "0")
        grown.click("#play")
        grown.wait_for_function("() => Number(document.getElementById('step').value) > 2")
        assert violations(grown) == []


def test_a_phone_has_it_all(browser: Any, address: str) -> None:
    with opened(browser, address, viewport={"width": 320, "height": 640}, **TOUCH) as page:
        page.locator(KL).scroll_into_view_if_needed()
        page.locator(f"{KL} canvas").wait_for()
        box = page.locator(f"{KL} .u-over").bounding_box()
        page.touchscreen.tap(box["x"] + 60, box["y"] + 30)
        page.wait_for_function("() => monitor.view.cursor !== null")
        assert page.evaluate("document.scrollingElement.scrollWidth") <= 320
