// Shows a position around and on the board, and what is pointed at.

import { followOn, stopAsking } from "./advice.js";
import {
  showCells,
  showChances,
  showExit,
  showMoves,
  showPreview,
  showThreat,
  withHits,
} from "./board.js";
import { judgeMove } from "./coach.js";
import { $ } from "./elements.js";
import { showGhost } from "./ghost.js";
import { showAgent, showLast, showNumbers, showOdds, showPrograms, suggestions } from "./panels.js";
import { endFinishing, showReport } from "./report.js";
import { isWatched, store } from "./store.js";
import { showSurprises } from "./surprises.js";
import { isNew, showGoal } from "./tasks.js";
import { lineOf, showTime } from "./timeline.js";

const HINT = matchMedia("(hover: none)").matches
  ? "Tap a neighbor to move, an enemy in line to attack, yourself to siphon. Hold a cell or a program to see what it would do."
  : "Arrows move and attack, S siphons, ? lists all keys. Point at a cell or a program to see what it would do.";

export const handlers = { act() {}, go() {}, why() {}, end() {} }; // what clicks in panels do
let pointAgain = () => point(null); // at what is pointed at, which may be another action by now
let complaining;

export function setUp(facts) {
  store.about = facts;
  document.title = facts.playing ? "HackMatrix" : "HackMatrix: watch";
  document.body.classList.toggle("playing", facts.playing);
  document.body.classList.toggle("reviews", facts.reviews);
  document.body.classList.toggle("shared", Boolean(facts.shared));
  $("controls").replaceChildren(...facts.agents.map((name) => new Option(name, name)));
}

/** The action that follows on the line that is shown, and what it cost if that is known; null at its end. */
function played() {
  const node = store.game.nodes[lineOf(store.game)[store.game.nodes[store.game.at].step + 1]];
  return node ? { action: node.action, cost: store.game.reviews.get(node.number)?.[1] ?? 0 } : null;
}

const isShown = () => $("chances").checked && !$("guess").checked;

/** Everything but the board, which waits until the pieces have moved. */
export function show() {
  document.body.classList.remove("loading");
  document.body.classList.toggle("watching", isWatched());
  document.body.classList.toggle("developer", $("developer").checked);
  const { task } = store.position;
  $("seed").value ||= store.game.id;
  if (document.activeElement !== $("seed")) $("seed").value = store.game.id;
  showNumbers(store.position.seen, store.look);
  showPrograms(store.position, store.look, isShown() ? store.position.agent?.probabilities : null, {
    point,
    press: handlers.act,
    hold: (action) => hold(() => point(action)),
    wasd: $("wasd").checked,
    places: $("places").checked && !isWatched(),
  });
  showLast(store.position.last, store.game.nodes[store.game.at].total);
  const odds = isShown() ? store.game.odds.get(store.game.at) : undefined;
  showOdds(odds, store.look);
  showAnalysis();
  stopAsking();
  endFinishing();
  $("others").replaceChildren();
  followOn(showAnalysis);
  showTime(store.game, handlers.go);
  showPast();
  showGoal(store.position);
  judgeMove();
  document.body.classList.toggle(
    "in-task",
    Boolean(task) && (task.kind === "room" || !task.outcome),
  );
  $("siphon").disabled = store.position.actions[4].why !== undefined;
  showChances(null);
  showPreview(null);
}

/** What the agent thinks, and what is known of the moves of the game. */
export function showAnalysis() {
  const odds = isShown() ? store.game.odds.get(store.game.at) : undefined;
  const branches = store.game.searches.get(store.game.at) ?? store.position.agent?.branches ?? [];
  if (isWatched())
    showAgent(
      store.position.agent,
      odds,
      store.look,
      isShown(),
      $("developer").checked,
      played(),
      branches,
      { point, press: handlers.act, why: handlers.why },
    );
  showReport(store, handlers.go);
  showSurprises(handlers.go);
}

/** Whether this is the past; what is played from here is a variation. */
function showPast() {
  const last = store.game.nodes[lineOf(store.game).at(-1)].step;
  const { step } = store.game.nodes[store.game.at];
  const isPast = step < last && !isWatched();
  document.body.classList.toggle("past", isPast);
  $("past").hidden = !isPast;
  if (isPast) $("past-step").textContent = `Step ${step} of ${last}.`;
}

export function showBoard() {
  document.body.classList.remove("moving");
  showCells(store.position);
  showThreat(store.position.threat, $("threat").checked && !store.position.seen.over);
  const here = store.position.seen.player.row * 6 + store.position.seen.player.col;
  showChances(
    store.position.agent && isShown() ? store.position.agent.probabilities : null,
    here,
    store.look.neighbours,
  );
  showMoves(
    isWatched() && store.about.playing && !store.position.seen.over
      ? [
          [played()?.action, "own"],
          [store.position.agent?.suggests, "agents"],
        ]
      : [],
    here,
    store.look.neighbours,
  );
  const isFirst =
    store.about.playing &&
    $("speed").value !== "0" &&
    (store.position.task?.kind === "room" || (isNew() && store.position.seen.stage === 1));
  showExit(
    isFirst && store.game.at === 0
      ? store.position.board.findIndex(({ title }) => title.includes("exit"))
      : -1,
  );
  showGhost();
  handlers.end();
  pointAgain();
}

/** Points at an action (or nothing): shows what it would do. */
export function point(action) {
  pointAgain = () => point(action);
  tell(action);
}

/** Points at an action until the next position, then at what was pointed at before. */
export function pointOnce(action) {
  const before = pointAgain;
  point(action);
  pointAgain = before;
}

function tell(action, title = "", about = "") {
  const entry = action === null ? null : store.position?.actions[action];
  showPreview(entry, action === 4);
  const name = action === null ? "" : store.look.actions[action];
  $("info-title").textContent = title || name;
  const effect = entry && (title ? `${name}: ${describe(entry)}` : describe(entry));
  $("info-text").textContent = entry || title ? [about, effect].filter(Boolean).join(" ") : HINT;
  $("info").classList.toggle("quiet", !entry && !title);
  $("info").classList.toggle("impossible", Boolean(entry && entry.why !== undefined));
}

function describe(entry) {
  if (entry.why !== undefined) return `Not possible: ${entry.why}.`;
  const hits = entry.hits
    ? ` Up to ${entry.hits} ${entry.hits > 1 ? "hits" : "hit"} next turn.`
    : "";
  return `${entry.text}.${hits}`;
}

/** Points at a cell: what is there, and what acting on it would do. */
export function hover(cell) {
  if (cell === null || !store.position) {
    point(null);
    return;
  }
  pointAgain = () => hover(cell);
  const { labels, threat } = store.position;
  const [, head, about] = withHits(labels[cell], threat[cell]).match(/^(.*?)[.;:] ?(.*)$/);
  tell(actionAt(cell), head, about.charAt(0).toUpperCase() + about.slice(1));
}

/** Shows what a finger holds, until the next touch. */
export function hold(preview) {
  preview();
  document.body.classList.add("held");
  addEventListener(
    "pointerdown",
    () => {
      document.body.classList.remove("held");
      point(null);
    },
    { capture: true, once: true },
  );
}

/** The action that a cell stands for: the own cell siphons, others go in their direction. */
export function actionAt(cell) {
  const { row, col } = store.position.seen.player;
  const r = Math.floor(cell / 6);
  const c = cell % 6;
  if (r === row && c === col) return 4;
  if (r !== row && c !== col) return null;
  const direction = r > row ? 0 : r < row ? 1 : c < col ? 2 : 3;
  const isNext = Math.abs(r - row) + Math.abs(c - col) === 1;
  return isNext || store.position.actions[direction].cells?.includes(cell) ? direction : null;
}

export function complain(text) {
  $("problem").textContent = text;
  $("problem").hidden = !text;
  clearTimeout(complaining);
  if (store.position)
    complaining = setTimeout(() => {
      $("problem").hidden = true;
    }, 5000);
}

/** What the agent thought of the action that was taken by hand. */
export function tellVerdict(agent, action) {
  const [best, p] = suggestions(agent)[0];
  const own = Math.round(100 * agent.probabilities[action]);
  $("verdict").textContent =
    best === action
      ? `The agent agrees: ${own} %.`
      : `The agent: ${store.look.actions[best]} ${Math.round(100 * p)} %, yours ${own} %.`;
}
