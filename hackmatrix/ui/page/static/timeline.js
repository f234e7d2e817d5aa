// The course of the game: a scrub bar under the graph of the odds, and the variations.

import { element } from "./draw.js";
import { $, one } from "./elements.js";

const svg = one("#graph svg");
const tree = one("#tree svg");
const HEIGHT = 48; // pixels of the graph, without the line under it
const LANE = 13;
const MOST_LANES = 6;
let drawn = "";
let drawnTree = "";

/** The nodes of the line that is shown: the way to `at`, and on along the children last visited. */
export function lineOf(game) {
  const line = [];
  for (let n = game.at; n >= 0; n = game.nodes[n].parent) line.unshift(n);
  for (let n = next(game, line.at(-1)); n !== undefined; n = next(game, n)) line.push(n);
  return line;
}

const next = (game, number) => game.nodes[number].visited ?? game.nodes[number].children[0];

export function showTime(game, go) {
  const line = lineOf(game);
  const step = game.nodes[game.at].step;
  const last = Math.max(line.length - 1, 1);
  const scrub = $("scrub");
  scrub.max = line.length - 1;
  scrub.value = step;
  $("step-number").textContent = `step ${step} of ${line.length - 1}`;
  const width = Math.max($("graph").clientWidth, 100);
  const totals = line.map((n) => game.nodes[n].total);
  const values = line.map((n) => game.opinions.get(n)?.[0] ?? null);
  const odds = line.map((n) => game.odds.get(n)?.[0] ?? null);
  const all = $("developer").checked;
  const known = JSON.stringify([width, line.length, line.at(-1), values, odds, step, all]);
  if (known !== drawn) {
    drawn = known;
    svg.setAttribute("viewBox", `0 0 ${width} ${HEIGHT}`);
    const x = (i) => 6 + (i / last) * (width - 12);
    svg.replaceChildren(
      ...(watches(game)
        ? [
            element("path", { d: `M0 ${HEIGHT / 2} H${width}`, class: "even" }),
            element("path", { d: curve(odds, x, [0, 1]), class: "odds" }),
          ]
        : []),
      ...(all
        ? [
            element("path", { d: curve(totals, x), class: "return" }),
            element("path", { d: curve(values, x), class: "value" }),
          ]
        : []),
      ...stages(game, line, x),
      element("path", { d: `M${x(step)} 0 V${HEIGHT}`, class: "cursor" }),
      ...branches(game, line, x),
    );
  }
  showTree(game, width, go);
}

/** Whether the odds of the game's positions are known. */
const watches = (game) => game.odds.size > 0;

/** A curve over a range, else over its own, so that one scale does not hide the other. */
function curve(numbers, x, range = null) {
  const known = numbers.filter((n) => n !== null);
  if (!known.length) return "";
  const [low, high] = range ?? [Math.min(...known), Math.max(...known)];
  const span = high - low || 1;
  let pen = "M";
  return numbers
    .map((n, i) => {
      if (n === null) {
        pen = "M";
        return "";
      }
      const point = `${pen}${x(i).toFixed(1)} ${(HEIGHT - 8 - ((n - low) / span) * (HEIGHT - 16)).toFixed(1)}`;
      pen = "L";
      return point;
    })
    .join("");
}

function stages(game, line, x) {
  return line.flatMap((n, i) => {
    const { stage } = game.nodes[n];
    const isNew = i === 0 || stage !== game.nodes[line[i - 1]].stage;
    if (!isNew) return [];
    const number = element("text", { x: x(i) + 3, y: 11 }, String(stage));
    return i ? [element("path", { d: `M${x(i)} 0 V${HEIGHT}`, class: "stage" }), number] : [number];
  });
}

function branches(game, line, x) {
  return line.flatMap((n, i) =>
    game.nodes[n].children.length > 1
      ? [element("circle", { cx: x(i), cy: HEIGHT - 3, r: 3, class: "branch" })]
      : [],
  );
}

/** The last nodes of all lines: the main one first, then the variations in the order they were made. */
export function leaves(game) {
  const found = [];
  for (const node of game.nodes) if (!node.children.length) found.push(node.number);
  let main = 0;
  while (game.nodes[main].children.length) main = game.nodes[main].children[0];
  return [main, ...found.filter((n) => n !== main)];
}

function showTree(game, width, go) {
  const ends = leaves(game);
  $("tree").hidden = ends.length < 2;
  if (ends.length < 2) return;
  const known = JSON.stringify([ends, game.at, width]);
  if (known === drawnTree) return;
  drawnTree = known;
  const shown = ends.slice(0, 1).concat(ends.slice(1).slice(1 - MOST_LANES));
  const deepest = Math.max(...ends.map((n) => game.nodes[n].step), 1);
  const x = (step) => 6 + (step / deepest) * (width - 12);
  const lanes = new Map();
  const height = shown.length * LANE + 4;
  tree.setAttribute("viewBox", `0 0 ${width} ${height}`);
  tree.style.height = `${height}px`;
  tree.replaceChildren();
  shown.forEach((end, lane) => {
    const own = [];
    let n = end;
    for (; n >= 0 && !lanes.has(n); n = game.nodes[n].parent) {
      lanes.set(n, lane);
      own.unshift(n);
    }
    const y = lane * LANE + LANE / 2 + 2;
    const first = game.nodes[own[0]].step;
    const from =
      n >= 0
        ? `M${x(first - 1)} ${lanes.get(n) * LANE + LANE / 2 + 2} L${x(first)} ${y}`
        : `M${x(first)} ${y}`;
    const d = `${from} H${x(game.nodes[end].step)}`;
    tree.append(
      element("path", {
        d,
        class: own.some((m) => game.nodes[m].by === "you") ? "mine" : "theirs",
      }),
    );
    const hit = element("path", {
      d: `M${x(first)} ${y} h${Math.max(x(game.nodes[end].step) - x(first), 8)}`,
      class: "hit",
    });
    hit.addEventListener("click", (event) => {
      const at =
        Math.round((((event.offsetX / tree.clientWidth) * width - 6) / (width - 12)) * deepest) -
        first;
      go(own[Math.min(Math.max(at, 0), own.length - 1)]);
    });
    tree.append(hit);
  });
  const lane = lanes.get(game.at);
  if (lane !== undefined)
    tree.append(
      element("circle", {
        cx: x(game.nodes[game.at].step),
        cy: lane * LANE + LANE / 2 + 2,
        r: 4.5,
        class: "here",
      }),
    );
}

/** The nodes of the line where no action has half of the probability. */
export const unsure = (game, line) => line.filter((n) => (game.opinions.get(n)?.[1] ?? 1) < 0.5);
