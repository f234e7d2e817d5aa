// One plot for each metric: its curves, healthy range, alarms and checkpoints; a cursor over all.

import { all, targetOf } from "./elements.js";
import { drawHealth, drawMarks } from "./marks.js";
import { said, short } from "./numbers.js";
import uPlot from "./uplot.js";
import { colourOf, environments, ink, isDashed, isFaint, isShown, span, view } from "./view.js";

/** @type {any} */
const Plot = uPlot; // which is not typed
const cards = new Map(); // by metric
const visible = new Set(); // cards near the window
const FAINT = "66"; // opacity of lines while another group is pointed at
const HIT = 12;
const HIT_HEIGHT = 22; // pixels around a checkpoint's mark
let wake = () => {};
let moved = (_x) => {};
let zoomed = (_part) => {};

const near = new IntersectionObserver(
  (entries) => {
    for (const entry of entries) {
      const card = cards.get(targetOf(entry).dataset.metric);
      if (entry.isIntersecting) {
        visible.add(card);
        card.plot?.redraw(false);
      } else visible.delete(card);
    }
    wake();
  },
  { rootMargin: "300px" },
);
const resized = new ResizeObserver((entries) => {
  for (const entry of entries) {
    const card = cards.get(entry.target.parentElement.dataset.metric);
    if (card.plot && Math.abs(card.plot.width - entry.contentRect.width) > 1)
      card.plot.setSize(sizeOf(card));
  }
});

/** Takes what to do when plots want curves, the cursor moves, a part is chosen. */
export function listen(handlers) {
  ({ wake, moved, zoomed } = handlers);
}

const make = (name, attributes = {}, ...children) => {
  const made = Object.assign(document.createElement(name), attributes);
  made.append(...children);
  return made;
};

/** Makes the cards of metrics that are new, in their groups. */
export function showCards(groups) {
  const plots = document.getElementById("plots");
  for (const { title, metrics } of groups) {
    let section = all(":scope > details", plots).find((each) => each.dataset.title === title);
    if (!section) {
      const summary = make("summary", {}, title, " ", make("small"));
      section = make(
        "details",
        { open: title !== "Programs" },
        summary,
        make("div", { className: "cards" }),
      );
      section.dataset.title = title;
      plots.append(section);
    }
    section.querySelector("small").textContent = metrics.length;
    for (const metric of metrics) {
      if (!cards.has(metric.name)) section.lastElementChild.append(makeCard(metric).element);
      cards.get(metric.name).metric = metric;
      showHealth(cards.get(metric.name));
    }
  }
}

function makeCard(metric) {
  const title = make("button", {
    type: "button",
    textContent: metric.label,
    title: `${metric.name}: ${metric.meaning}. Click to enlarge.`,
  });
  const card = {
    metric,
    plot: null,
    answer: null,
    fit: null,
    key: "",
    values: make("span", { className: "values" }),
    healthy: make("span", { className: "healthy" }),
    picture: make("div", { className: "picture" }),
  };
  card.element = make(
    "article",
    { className: "card" },
    make("h3", {}, title, card.healthy, card.values),
    card.picture,
  );
  card.element.dataset.metric = metric.name;
  card.picture.setAttribute("role", "img");
  card.picture.setAttribute("aria-label", metric.label);
  title.onclick = () => {
    card.element.classList.toggle("large");
    card.plot?.setSize(sizeOf(card));
    card.key = "";
    wake();
  };
  cards.set(metric.name, card);
  near.observe(card.element);
  resized.observe(card.picture);
  return card;
}

function showHealth(card) {
  const { limits, health, fraction } = card.metric;
  const worst = health.includes("critical")
    ? "critical"
    : health.includes("warning")
      ? "warning"
      : "";
  card.element.classList.toggle("critical", worst === "critical");
  card.element.classList.toggle("warning", worst === "warning");
  if (!limits.length) return;
  const { below, above } = limits[0];
  card.healthy.textContent = `healthy ${below !== null ? `≥ ${said(below, fraction)}` : `≤ ${said(above, fraction)}`}`;
}

/** Shows only metrics whose name or label holds a text. */
export function filter(text) {
  const wanted = text.trim().toLowerCase();
  for (const card of cards.values())
    card.element.hidden = !`${card.metric.name} ${card.metric.label}`
      .toLowerCase()
      .includes(wanted);
  for (const section of all("#plots details:has(.cards)")) {
    const found = all(".card", section).some((card) => !card.hidden);
    section.hidden = !found;
    if (wanted && found) section.open = true;
  }
}

/** The metrics whose curves are not those of this key, of the plots near the window. */
export const wanting = (key) =>
  [...visible]
    .filter((card) => card.key !== key && !card.element.hidden)
    .map((card) => card.metric.name);

/** Draws what the server answered. */
export function drawCurves(curves, key) {
  for (const [name, answer] of Object.entries(curves)) {
    const card = cards.get(name);
    Object.assign(card, { answer, key });
    draw(card);
  }
}

/** Draws a group alone in its colours, or all again. */
export function point(group) {
  if (view.pointed === group) return;
  view.pointed = group;
  for (const card of visible) card.plot?.redraw(false);
}

/** Draws all again, as after a switch. */
export function redraw() {
  for (const card of cards.values()) if (card.answer) draw(card);
}

const sizeOf = (card) => ({
  width: Math.max(120, card.picture.clientWidth),
  height: card.picture.clientHeight,
});

/** The lines of a card: groups that are shown, the seeds of each, the mean with its interval. */
function linesOf(card) {
  const lines = [];
  card.answer.forEach((group, i) => {
    if (!group || !isShown(i)) return;
    const many = group.lines.length > 1;
    if (!many || view.seeds || !group.mean)
      for (const line of group.lines)
        lines.push({ group: i, kind: many ? "seed" : "main", x: line.x, ys: [line.y] });
    if (group.mean)
      lines.push({
        group: i,
        kind: "mean",
        x: group.mean.x,
        ys: [group.mean.y, group.mean.low, group.mean.high],
      });
  });
  return lines;
}

function draw(card) {
  const lines = linesOf(card);
  card.lines = lines;
  showValues(card);
  const signature = lines.map((line) => line.group + line.kind + scaleOf(card, line.group)).join();
  if (card.plot && card.signature !== signature) {
    card.plot.destroy();
    card.plot = null;
  }
  card.picture.querySelector(".nothing")?.remove();
  if (!lines.length) {
    card.picture.append(
      make("p", {
        className: "nothing",
        textContent: card.metric.health.some((_, i) => isShown(i) && isBroken(card, i))
          ? "NaN or infinite"
          : "nothing measured here",
      }),
    );
    return;
  }
  const data = uPlot.join(lines.map((line) => [line.x, ...line.ys]));
  if (card.plot) {
    card.plot.setData(data);
    return;
  }
  card.signature = signature;
  card.plot = new Plot(optionsOf(card, lines), data, card.picture);
  listenToPointers(card.plot);
  listenToClicks(card.plot);
}

function optionsOf(card, lines) {
  const series = [{}];
  const bands = [];
  for (const { group, kind } of lines) {
    const colour = colourOf(group);
    const dash = isDashed(group) ? [8, 3] : undefined;
    const inked = (alpha) => () => (isFaint(group) ? ink("faint") + FAINT : colour + alpha);
    const scale = scaleOf(card, group);
    const line = {
      scale,
      stroke: inked(kind === "seed" ? "88" : ""),
      width: kind === "seed" ? 1 : 1.75,
      dash: kind === "seed" ? undefined : dash,
      points: { show: (_u) => lines.every((each) => each.x.length < 3), size: 5, fill: colour },
      spanGaps: true,
    };
    if (kind === "mean") {
      bands.push({
        series: [series.length + 2, series.length + 1],
        fill: () => colour + (isFaint(group) ? "08" : "2e"),
      });
      series.push(
        line,
        { scale, stroke: "transparent", points: { show: false }, spanGaps: true },
        { scale, stroke: "transparent", points: { show: false }, spanGaps: true },
      );
    } else series.push(line);
  }
  const scales = [...new Set(lines.map(({ group }) => scaleOf(card, group)))].sort();
  const axis = {
    stroke: ink("label"),
    font: "11px system-ui, sans-serif",
    grid: { stroke: ink("plate"), width: 1 },
    ticks: { show: false },
    border: { show: false },
  };
  return {
    ...sizeOf(card),
    series,
    bands,
    legend: { show: false },
    padding: [8, 14, 0, 0],
    scales: {
      x: { time: false, range: span },
      ...Object.fromEntries(scales.map((scale) => [scale, { range: () => rangeOf(card, scale) }])),
    },
    axes: [
      { ...axis, size: 22, gap: 4, space: 60, values: (_u, splits) => splits.map(short) },
      ...scales.map((scale, i) => ({
        ...axis,
        scale,
        side: i ? 1 : 3, // that of the first environment at the left
        grid: { ...axis.grid, show: !i },
        label: scale === "y" ? undefined : scale.slice(2),
        labelFont: axis.font,
        labelSize: 14,
        size: 48,
        gap: 4,
        space: 28,
        values: (_u, splits) =>
          splits.map((value) =>
            card.metric.fraction ? `${Number((value * 100).toPrecision(3))}%` : short(value),
          ),
      })),
    ],
    cursor: {
      y: false,
      points: { show: false },
      drag: { x: true, y: false, setScale: false, dist: 6 },
      bind: {
        dblclick: () => () => zoomed(null),
        mouseleave: () => null, // see `listenToPointers`: a finger that is lifted has not left
        click: () => null,
      },
    },
    hooks: {
      drawClear: [(u) => drawHealth(u, card.metric)],
      draw: [(u) => drawMarks(u, card)],
      setCursor: [(u) => u.cursor.event && u.cursor.left >= 0 && moved(nearest(u, u.cursor.left))],
      setSelect: [
        (u) => {
          if (u.select.width < 6) return;
          zoomed([u.posToVal(u.select.left, "x"), u.posToVal(u.select.left + u.select.width, "x")]);
          u.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
        },
      ],
    },
  };
}

/** The name of the y-axis of a group: each environment's own, but for shares and what has a healthy range. */
function scaleOf({ metric }, group) {
  const all = environments();
  if (all.length < 2 || metric.fraction || metric.limits.length) return "y";
  const { environment } = view.overview.groups[group];
  return `${all.indexOf(environment)} ${environment || "other"}`;
}

/** The ranges of the y-axes of a metric's plot, by name. For tests. */
export function rangesOf(name) {
  const { series, scales } = cards.get(name).plot;
  return Object.fromEntries(
    series.slice(1).map(({ scale }) => [scale, [scales[scale].min, scales[scale].max]]),
  );
}

/** The range of a y-axis: of its groups that are shown, or of the chosen one; without spikes unless they are wanted. */
function rangeOf(card, scale) {
  const isOn = (i) => isShown(i) && scaleOf(card, i) === scale;
  const shown = card.answer.filter((group, i) => group && isOn(i));
  const chosen = card.fit !== null && isOn(card.fit) && card.answer[card.fit];
  const ranges = (chosen ? [chosen] : shown).map((group) =>
    view.outliers ? group.full : group.range,
  );
  if (!ranges.length) return [0, 1];
  const low = Math.min(...ranges.map(([each]) => each));
  const high = Math.max(...ranges.map(([, each]) => each));
  const room = high > low ? 0.07 * (high - low) : Math.abs(low) * 0.1 || 0.5;
  return [low >= 0 ? Math.max(0, low - room) : low - room, high + room];
}

/** The row that is nearest to a pixel of a plot, as a place on the axis. */
const nearest = (plot, left) => plot.data[0][plot.posToIdx(left)] ?? null;

function listenToPointers(plot) {
  const touch = (event) =>
    event.pointerType !== "mouse" &&
    moved(nearest(plot, event.clientX - plot.over.getBoundingClientRect().left));
  plot.over.addEventListener("pointerdown", touch);
  plot.over.addEventListener("pointermove", touch);
  plot.over.addEventListener(
    "pointerleave",
    (event) => event.pointerType === "mouse" && moved(null),
  );
}

/** A click on a checkpoint's mark opens its page, unless the pointer was dragged. */
function listenToClicks(plot) {
  let from = 0;
  plot.over.addEventListener("pointerdown", (event) => {
    from = event.clientX;
  });
  plot.over.addEventListener("mousemove", (event) => {
    plot.over.style.cursor = checkpointAt(plot, event) ? "pointer" : "";
  });
  plot.over.addEventListener("click", (event) => {
    const saved = Math.abs(event.clientX - from) < 6 && checkpointAt(plot, event);
    if (saved) open(saved.page, "_blank", "noopener");
  });
}

/** The checkpoint whose mark is under the pointer; under a finger marks are larger. */
function checkpointAt(plot, event) {
  const { left, bottom } = plot.over.getBoundingClientRect();
  const larger = event.pointerType === "touch" ? 2 : 1;
  if (bottom - event.clientY > HIT_HEIGHT * larger) return null;
  const distance = (saved) =>
    Math.abs(plot.valToPos(saved.at[view.axis], "x") - (event.clientX - left));
  const near = view.overview.checkpoints.filter(
    (saved) => saved.page && isShown(saved.group) && distance(saved) <= HIT * larger,
  );
  return near.reduce(
    (best, saved) => (best && distance(best) <= distance(saved) ? best : saved),
    null,
  );
}

/** Moves the cursor of all plots to a place on the axis; null hides it. */
export function moveCursor(x) {
  for (const card of cards.values()) {
    if (!card.plot || !visible.has(card)) continue;
    const left = x === null ? -10 : card.plot.valToPos(x, "x");
    card.plot.setCursor({ left, top: left < 0 ? -10 : 1 }, false);
    showValues(card);
  }
}

/** Whether a group's last value is NaN or infinite. */
const isBroken = ({ metric }, group) =>
  metric.last[group] === null && metric.health[group] === "critical";

/** The value of each group at the cursor, or its last one. */
function showValues(card) {
  const parts = [];
  const words = [];
  for (const line of card.lines ?? []) {
    if (line.kind === "seed" && card.answer[line.group].mean) continue;
    const value =
      view.cursor === null && isBroken(card, line.group) ? NaN : valueAt(line, view.cursor);
    const text = said(value, card.metric.fraction);
    parts.push([line.group, text]);
    words.push(`${view.overview.groups[line.group].name} ${text}`);
  }
  const { values } = card;
  for (const [i, [group, text]] of parts.entries()) {
    const button = values.children[i] ?? values.appendChild(make("button", { type: "button" }));
    showValue(card, button, group, text);
  }
  while (card.values.children.length > parts.length) card.values.lastChild.remove();
  card.picture.setAttribute(
    "aria-label",
    `${card.metric.label}: ${words.join(", ") || "nothing measured"}`,
  );
}

/** A group's value; a click fits the plot to this group alone, another click to all. */
function showValue(card, button, group, text) {
  const name = view.overview.groups[group].name;
  button.textContent = text;
  button.title = `${name}: click to fit the plot to it`;
  button.setAttribute("aria-label", `${name} ${text}, fit the plot to it`);
  button.setAttribute("aria-pressed", card.fit === group);
  button.style.color = colourOf(group);
  button.dataset.group = group;
  button.onclick = () => {
    card.fit = card.fit === group ? null : group;
    draw(card);
  };
}

/** The point of a line that is nearest to a place; none past its ends. */
function valueAt({ x, ys: [y] }, at) {
  if (at === null || !x.length) return y[y.length - 1];
  let low = 0;
  let high = x.length - 1;
  if (at > x[high] * 1.0001 + 1e-9) return null;
  while (high - low > 1) {
    const middle = (low + high) >> 1;
    if (x[middle] < at) low = middle;
    else high = middle;
  }
  return at - x[low] <= x[high] - at ? y[low] : y[high];
}
