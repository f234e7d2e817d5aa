// The monitor's page: asks the server again and again, and draws what is in sight.

import { $, targetOf } from "./elements.js";
import {
  showAlarms,
  showCheckpoints,
  showCursor,
  showPictures,
  showRuns,
  showSettings,
} from "./panels.js";
import {
  drawCurves,
  filter,
  listen,
  moveCursor,
  point,
  rangesOf,
  redraw,
  showCards,
  wanting,
} from "./plots.js";
import { span, view } from "./view.js";

const SCRUB = 1000; // positions of the cursor's slider
let asking = false;
let timer = null;
let frame = null;

const json = async (path) => {
  const answer = await fetch(path);
  if (!answer.ok) throw new Error(await answer.text());
  return answer.json();
};

function complain(text) {
  $("problem").hidden = !text;
  if ($("problem").textContent !== text) $("problem").textContent = text;
}

/** Asks what is new, shows it, and asks again after the interval. */
async function look() {
  clearTimeout(timer);
  try {
    view.overview = await json("overview");
    document.body.classList.remove("lost");
    complain(view.overview.problem ?? "");
  } catch {
    document.body.classList.add("lost");
    complain("The monitor does not answer: was it stopped?");
  }
  if (view.overview) showOverview();
  const seconds = view.overview?.unread ? 1 : (view.overview?.interval ?? 2);
  timer = setTimeout(look, document.hidden ? 60_000 : 1000 * seconds);
}

function showOverview() {
  showRuns(changed);
  showSettings();
  showAlarms(goTo);
  showCheckpoints();
  showPictures();
  showCards(view.overview.metrics);
  const waiting = !view.overview.metrics.length;
  if (waiting && !view.overview.unread) document.body.dataset.ready = "true"; // there is nothing to draw
  if (waiting)
    $("empty").textContent = view.overview.unread
      ? "Reading the runs …"
      : "No metrics yet: the first row comes after --log-interval updates.";
  $("empty").hidden = !waiting;
  if ($("filter").value) filter($("filter").value);
  showCursor();
  wake();
}

/**
 * Asks for the curves of the plots in sight that are not up to date, a few at a time. Rows that come
 * meanwhile wait for the next look, so that each plot has its turn while a long run is being read.
 */
async function wake() {
  if (asking || !view.overview) return;
  asking = true;
  const { version } = view.overview;
  const key = () => JSON.stringify([version, view.axis, view.rows, view.zoom]);
  try {
    for (;;) {
      const names = wanting(key()).slice(0, 12);
      if (!names.length) break;
      const wanted = key();
      const query = new URLSearchParams({
        axis: view.axis,
        rows: String(view.rows),
        pixels: "500",
      });
      for (const name of names) query.append("metric", name);
      if (view.zoom) {
        query.set("low", view.zoom[0]);
        query.set("high", view.zoom[1]);
      }
      const answer = await json(`curves?${query}`).catch(() => null);
      if (!answer) break; // `look` says that the server is gone
      drawCurves(answer.curves, wanted);
      document.body.dataset.ready = "true";
    }
  } finally {
    asking = false;
  }
  if (view.cursor !== null) moveCursor(view.cursor);
}

/** After a run was hidden or shown, or a switch was set. */
function changed() {
  showRuns(changed);
  showSettings();
  showAlarms(goTo);
  showCheckpoints();
  redraw();
  showCursor();
}

function moved(x) {
  view.cursor = x;
  if (frame !== null) return;
  frame = requestAnimationFrame(() => {
    frame = null;
    const [low, high] = span();
    $("cursor").value = view.cursor === null ? SCRUB : (SCRUB * (view.cursor - low)) / (high - low);
    moveCursor(view.cursor);
    showCursor();
    $("cursor").setAttribute("aria-valuetext", $("where").textContent);
  });
}

function zoomed(part) {
  view.zoom = part;
  $("reset").disabled = part === null;
  view.cursor = null;
  redraw();
  showCursor();
  wake();
}

function goTo(x, metric) {
  document
    .querySelector(`[data-metric="${CSS.escape(metric)}"]`)
    ?.scrollIntoView({ block: "nearest" });
  if (view.zoom && (x < view.zoom[0] || x > view.zoom[1])) zoomed(null);
  moved(x);
}

/** Rows of the smoothing slider: 1, then rising by about a third at each position. */
const rowsAt = (position) => Math.round(10 ** (position / 8));

function wire() {
  listen({ wake, moved, zoomed });
  $("view").onsubmit = (event) => event.preventDefault();
  $("axis").onchange = () => {
    view.axis = $("axis").value;
    view.cursor = null;
    zoomed(null);
    showOverview();
  };
  $("rows").oninput = () => {
    view.rows = rowsAt(Number($("rows").value));
    $("rows-said").textContent = view.rows === 1 ? "1 row" : `${view.rows} rows`;
    wake();
  };
  $("outliers").onchange = () => {
    view.outliers = $("outliers").checked;
    redraw();
  };
  $("seeds").onchange = () => {
    view.seeds = $("seeds").checked;
    redraw();
  };
  $("filter").oninput = () => {
    filter($("filter").value);
    wake();
  };
  $("reset").onclick = () => zoomed(null);
  $("cursor").oninput = () => {
    const [low, high] = span();
    const position = Number($("cursor").value);
    moved(position === SCRUB ? null : low + ((high - low) * position) / SCRUB);
  };
  const pointed = ({ target }) => Number(target.closest?.("[data-group]")?.dataset.group ?? NaN);
  const isolate = (event) => point(Number.isNaN(pointed(event)) ? null : pointed(event));
  document.addEventListener("pointerover", (event) => {
    if (event.pointerType === "mouse") isolate(event);
  });
  document.addEventListener("focusin", (event) => {
    if (targetOf(event).matches(":focus-visible")) isolate(event);
  });
  document.addEventListener("focusout", () => point(null));
  // What is drawn keeps its colours.
  matchMedia("(prefers-color-scheme: light)").onchange = () => location.reload();
  document.addEventListener("visibilitychange", () => document.hidden || look());
  addEventListener("keydown", (event) => {
    if (event.key === "Escape" && view.zoom) zoomed(null);
  });
}

wire();
look();
Object.assign(window, { monitor: { view, moved, zoomed, rangesOf } }); // for tests
