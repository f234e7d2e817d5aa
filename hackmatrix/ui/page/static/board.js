// The board: its picture, the layers over it, and 36 buttons that can be focused and clicked.

import { drawCell, element, letters, lettersWidth, newPiece, shape } from "./draw.js";
import { FINGERS, onHold } from "./hold.js";

/** @import { Position, Preview } from "../../session/messages" */

const SIZE = 6;
const CELL = 100;
const SWIPE = 24; // pixels, from a tap to a swipe
const TAG = 10; // height of a probability
const SCENE = 44; // pixels of a cell in a picture of a rule
export const cellX = (cell) => (cell % SIZE) * CELL;
export const cellY = (cell) => (SIZE - 1 - Math.floor(cell / SIZE)) * CELL;

const picture = document.getElementById("picture");
const grid = document.getElementById("grid");
const layers = {};
const cells = [];
const drawn = [];
const buttons = [];

/** Makes the layers and the buttons; `hover(cell | null)`, `press(cell)`, `hold(cell)` by fingers and `swipe(direction)` are told. */
export function makeBoard({ hover, press, hold, swipe }) {
  for (const name of [
    "ground",
    "edges",
    "threat",
    "sprites",
    "chances",
    "moves",
    "preview",
    "exit",
    "ghost",
  ]) {
    layers[name] = element("g", { class: name });
    picture.append(layers[name]);
  }
  for (let cell = 0; cell < SIZE * SIZE; cell++) {
    cells[cell] = element("g");
    layers.ground.append(cells[cell]);
  }
  for (let row = SIZE - 1; row >= 0; row--) {
    const line = document.createElement("div");
    line.setAttribute("role", "row");
    for (let col = 0; col < SIZE; col++) line.append(makeButton(row * SIZE + col, hover, press));
    grid.append(line);
  }
  for (
    let i = 0;
    i < SIZE;
    i++ // rows and columns, as texts name them
  )
    layers.edges.append(
      letters(String(i), -11, cellY(i * SIZE) + 45, 10, "label"),
      letters(String(i), cellX(i) + 47, 604, 10, "label"),
    );
  grid.addEventListener("pointerleave", (event) => event.pointerType === "mouse" && hover(null));
  onHold(
    grid,
    (event) => {
      const { cell } = event.target.dataset;
      if (cell) hold(Number(cell));
    },
    FINGERS,
  );
  listenForSwipes(swipe);
}

/** A finger that moves over the board moves the player, and presses no cell. */
function listenForSwipes(swipe) {
  let start = null;
  let swiped = false;
  grid.addEventListener("pointerdown", (event) => {
    start =
      event.isPrimary && event.pointerType !== "mouse" ? [event.clientX, event.clientY] : null;
    swiped = false;
  });
  grid.addEventListener("pointerup", (event) => {
    if (!start) return;
    const [right, down] = [event.clientX - start[0], event.clientY - start[1]];
    swiped = Math.max(Math.abs(right), Math.abs(down)) >= SWIPE;
    if (swiped) swipe(Math.abs(right) > Math.abs(down) ? (right < 0 ? 2 : 3) : down < 0 ? 0 : 1);
    start = null;
  });
  grid.addEventListener(
    "click",
    (event) => {
      if (swiped && event.detail) event.stopPropagation();
      swiped = false;
    },
    true,
  );
}

function makeButton(cell, hover, press) {
  const button = document.createElement("button");
  button.type = "button";
  button.tabIndex = cell ? -1 : 0;
  button.dataset.cell = cell;
  button.setAttribute("role", "gridcell");
  button.addEventListener("pointerenter", (event) => event.pointerType === "mouse" && hover(cell));
  button.addEventListener("focus", () => {
    if (button.matches(":focus-visible")) hover(cell);
    roam(cell);
  });
  button.addEventListener("click", () => press(cell));
  buttons[cell] = button;
  return button;
}

function roam(cell) {
  for (const [i, button] of buttons.entries()) button.tabIndex = i === cell ? 0 : -1;
}

/** Moves the focus from cell to cell. */
export function moveFocus(rows, cols, start) {
  const from = buttons.indexOf(document.activeElement);
  const cell = from < 0 ? start : from;
  const row = Math.floor(cell / SIZE) + (from < 0 ? 0 : rows);
  const col = (cell % SIZE) + (from < 0 ? 0 : cols);
  if (row >= 0 && row < SIZE && col >= 0 && col < SIZE) buttons[row * SIZE + col].focus();
}

/** A cell's label, with the hits that enemies can deal there in their next turn. */
export const withHits = (label, hits) =>
  hits ? `${label} Up to ${hits} ${hits > 1 ? "hits" : "hit"} here next turn.` : label;

/**
 * Shows the cells of a position; only those that changed are drawn again.
 *
 * @param {Position} position
 */
export function showCells({ board, labels, threat }) {
  layers.sprites.replaceChildren();
  board.forEach((group, cell) => {
    const text = JSON.stringify(group);
    if (drawn[cell] !== text) {
      const made = drawCell(group);
      cells[cell].replaceWith(made);
      cells[cell] = made;
      drawn[cell] = text;
    }
    const place = `Row ${Math.floor(cell / SIZE)}, column ${cell % SIZE}`;
    const label = `${place}: ${withHits(labels[cell], threat[cell])}`;
    if (buttons[cell].getAttribute("aria-label") !== label)
      buttons[cell].setAttribute("aria-label", label);
  });
}

/** Takes the pieces off their cells, onto the layer of moving ones. */
export function liftPieces() {
  const sprites = [];
  cells.forEach((group, cell) => {
    for (const piece of [...group.querySelectorAll(".piece")]) {
      drawn[cell] = "";
      sprites.push(addSprite(piece, cell));
    }
  });
  return sprites;
}

/** The drawing of a cell, for whoever changes it; it is drawn anew when the cell is shown again. */
export function cellToChange(cell) {
  drawn[cell] = "";
  return cells[cell];
}

export function addSprite(piece, cell) {
  const holder = element("g", { transform: `translate(${cellX(cell)} ${cellY(cell)})` }, piece);
  layers.sprites.append(holder);
  return { holder, piece, kind: piece.dataset.kind, cell, x: 0, y: 0 };
}

export function addEffect(...marks) {
  const group = element("g", {}, ...marks);
  layers.sprites.append(group);
  return group;
}

/** The threat layer: a red edge, and a notch for each hit that can be taken on a cell. */
export function showThreat(threat, isOn) {
  layers.threat.replaceChildren(...(isOn ? threatMarks(threat) : []));
}

const threatMarks = (threat) =>
  threat.flatMap((hits, cell) => {
    if (!hits) return [];
    const x = cellX(cell);
    const y = cellY(cell);
    const notches = Array.from({ length: Math.min(hits, 4) }, (_, i) =>
      element("path", { d: `M${x + 10 + i * 15} ${y + 4} h11 l-5.5 11 z`, class: "notch" }),
    );
    return [
      element("rect", { x: x + 3, y: y + 3, width: 94, height: 94, class: "reach" }),
      ...notches,
    ];
  });

/**
 * What an action would change: outlines, and arrows where pieces go.
 *
 * @param {Preview | null} action
 * @param {boolean} [isSiphon]
 */
export function showPreview(action, isSiphon) {
  layers.preview.replaceChildren();
  if (!action || action.why !== undefined) return;
  layers.preview.append(
    ...outlines(action.cells, isSiphon ? "cross" : "struck"),
    ...action.moves.map(arrow),
  );
}

const outlines = (cells, name) =>
  cells.map((cell) =>
    element("rect", {
      x: cellX(cell) + 5,
      y: cellY(cell) + 5,
      width: 90,
      height: 90,
      rx: 4,
      class: name,
    }),
  );

/** A picture of the board's lower left corner: cells, threats, and what an action changes. */
export const drawScene = ({ columns, rows, cells, threat, struck, cross, moves }) =>
  element(
    "svg",
    {
      viewBox: `0 ${CELL * (SIZE - rows)} ${CELL * columns} ${CELL * rows}`,
      width: SCENE * columns,
      height: SCENE * rows,
      class: "scene",
      "aria-hidden": "true",
    },
    ...cells.map(drawCell),
    ...threatMarks(threat),
    ...outlines(cross, "cross"),
    ...outlines(struck, "struck"),
    ...moves.map(arrow),
  );

function arrow([from, to]) {
  const [x1, y1, x2, y2] = [cellX(from) + 50, cellY(from) + 50, cellX(to) + 50, cellY(to) + 50];
  const length = Math.hypot(x2 - x1, y2 - y1) || 1;
  const dx = (x2 - x1) / length;
  const dy = (y2 - y1) / length;
  const tip = [x2 - dx * 18, y2 - dy * 18];
  const d = `M${x1 + dx * 30} ${y1 + dy * 30} L${tip} M${tip[0] - dx * 13 + dy * 10} ${tip[1] - dy * 13 - dx * 10} L${tip} L${tip[0] - dx * 13 - dy * 10} ${tip[1] - dy * 13 + dx * 10}`;
  return element("path", { d, class: "arrow" });
}

/** What up, down, left and right add to x and y. */
const STEPS = [
  [0, -1],
  [0, 1],
  [-1, 0],
  [1, 0],
];

/** Probabilities on the board: of directions as bars on the edges of the player's cell, of siphoning in its corner. */
export function showChances(probabilities, here, neighbours) {
  layers.chances.replaceChildren();
  if (!probabilities) return;
  const x = cellX(here) + 50;
  const y = cellY(here) + 50;
  STEPS.forEach(([dx, dy], direction) => {
    const p = probabilities[direction];
    if (p < 0.01 || neighbours[here][direction] === null) return;
    const [cx, cy] = [x + dx * 50, y + dy * 50];
    const half = 8 + 40 * p;
    const d = `M${cx - dy * half} ${cy - dx * half} L${cx + dy * half} ${cy + dx * half}`;
    const text = percent(p);
    const inwards = TAG / 2 + 4 + (dx ? lettersWidth(text, TAG) / 2 - 2 : 0); // in the player's cell: what it points at stays in sight
    layers.chances.append(
      element("path", { d, class: "chance", opacity: 0.45 + 0.55 * p }),
      tag(text, cx - dx * inwards, cy - dy * inwards + (dx < 0 ? -34 : dx * 8)),
    );
  });
  if (probabilities[4] >= 0.01) {
    layers.chances.append(shape("siphon", x + 24, y - 46, 20, "siphon"));
    layers.chances.append(tag(percent(probabilities[4]), x + 34, y - 18));
  }
}

/** Moves side by side: short arrows over the edges of the player's cell, a ring for siphoning; programs are marked in their panel. */
export function showMoves(moves, here, neighbours) {
  layers.moves.replaceChildren();
  const x = cellX(here) + 50;
  const y = cellY(here) + 50;
  moves.forEach(([action, name], i) => {
    if (action === 4)
      layers.moves.append(element("circle", { cx: x, cy: y, r: 34 + 8 * i, class: name }));
    if (action === undefined || action > 3 || neighbours[here][action] === null) return;
    const [dx, dy] = STEPS[action];
    const aside = 30 * (i ? 1 : -1);
    const far = 34;
    const [sx, sy] = [x + dx * 32 + dy * aside, y + dy * 32 + dx * aside];
    const [ex, ey] = [sx + dx * far, sy + dy * far];
    layers.moves.append(
      element("path", {
        d: `M${sx} ${sy} L${ex} ${ey} M${ex - dx * 14 - dy * 10} ${ey - dy * 14 - dx * 10} L${ex} ${ey} L${ex - dx * 14 + dy * 10} ${ey - dy * 14 + dx * 10}`,
        class: name,
      }),
    );
  });
}

/** A half-transparent player on a cell; null takes it away. */
export function showFigure(cell) {
  layers.ghost.replaceChildren();
  if (cell === null) return;
  layers.ghost.append(
    element(
      "g",
      { transform: `translate(${cellX(cell)} ${cellY(cell)})`, class: "figure" },
      newPiece("player"),
    ),
  );
}

/** Points at the exit at first: a ring that pulses a few times. */
export function showExit(cell) {
  layers.exit.replaceChildren();
  if (cell >= 0)
    layers.exit.append(
      element("rect", {
        x: cellX(cell) + 3,
        y: cellY(cell) + 3,
        width: 94,
        height: 94,
        rx: 8,
        class: "pulse",
      }),
    );
}

/** How the game may go on: the player's ways, each with its chance, a red cross where it ends in death. */
export function showTrails(ways) {
  layers.moves.replaceChildren();
  for (const [i, { trail, share, died }] of ways.entries()) {
    const aside = (i - (ways.length - 1) / 2) * 14;
    const cells = trail.filter((cell, step) => cell !== trail[step - 1]);
    const points = cells.map((cell) => [cellX(cell) + 50 + aside, cellY(cell) + 50 + aside]);
    if (points.length > 1) points[0] = middle(points[0], points[1]); // not over the figure
    const [x, y] = points.at(-1);
    const name = died ? "trail died" : "trail";
    layers.moves.append(
      element("path", { d: `M${points.join(" L")}`, class: name, "stroke-width": 4 + 8 * share }),
      element("path", { d: died ? cross(x, y) : circle(x, y), class: `${name} trail-end` }),
      tag(`${percent(share)}`, x, y + (i === 1 ? -24 : 24)),
    );
  }
}

const middle = ([x, y], [u, v]) => [(x + u) / 2, (y + v) / 2];
const cross = (x, y) => `M${x - 10} ${y - 10} l20 20 m0 -20 l-20 20`;
const circle = (x, y) => `M${x - 7} ${y} a7 7 0 1 0 14 0 a7 7 0 1 0 -14 0`;

const percent = (p) => String(Math.round(p * 100));

function tag(text, x, y) {
  const width = lettersWidth(text, TAG);
  const plate = element("rect", {
    x: x - width / 2 - 3,
    y: y - TAG / 2 - 3,
    width: width + 6,
    height: TAG + 6,
    rx: 3,
    class: "tag",
  });
  return element("g", {}, plate, letters(text, x - width / 2, y - TAG / 2, TAG, "text"));
}
