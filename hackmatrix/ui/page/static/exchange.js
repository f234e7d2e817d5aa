// Sends messages to the session, one at a time, and takes in what comes back.

import { play as animate, celebrate, stop } from "./animate.js";
import { $ } from "./elements.js";
import { begin, keep, recordEnd } from "./games.js";
import { ask } from "./link.js";
import { forgetLink } from "./share.js";
import { store } from "./store.js";

/** @import { Answer, Position, Request } from "../../session/messages" */

const MOST_WAITING = 8; // actions
let busy = false;
let waiting = [];
let ignored = 0; // actions beyond these, since the row began

/** What shows the answers; `main.js` fills it with functions of `view.js` and `tasks.js`, which send messages themselves. */
export const screen = {};

export const isAsking = () => busy;
export const isBusy = () => busy || document.body.classList.contains("moving");

/** Forgets what was asked of a session that is lost. */
export function forget() {
  busy = false;
  clearRow();
}

function clearRow() {
  waiting = [];
  ignored = 0;
}

/**
 * Sends a message; if the answer takes long, the page says so meanwhile.
 *
 * @param {Request} message
 */
export async function request(message) {
  const timer = setTimeout(() => document.body.classList.add("asking"), 400);
  const answer = await ask(message);
  clearTimeout(timer);
  document.body.classList.remove("asking");
  return answer;
}

/**
 * Sends a message and shows the position that it leads to; one at a time: actions wait in a row, of
 * others the newest.
 *
 * @param {Request} message
 * @param {object} [options]
 * @returns {Promise<Answer | undefined>} undefined of one that waits
 */
export async function send(message, options = {}) {
  if (!busy && !waiting.length) return exchange(message, options);
  if (message.do !== "act") clearRow();
  if (waiting.length < MOST_WAITING) waiting.push([message, options]);
  else {
    ignored += 1;
    $("said").textContent = tellIgnored();
  }
}

async function exchange(message, options) {
  busy = true;
  const before = store.position;
  const answer = await request(message);
  busy = false;
  if (answer.error) screen.complain(answer.error);
  if (answer.error || answer.nodes) waiting = waiting.filter(([{ do: name }]) => name !== "act"); // they were meant for another position
  try {
    if (answer.board) {
      const isHit = before && (answer.seen.player.hp < before.seen.player.hp || answer.seen.over);
      const note = isHit ? dropRow() : tellIgnored(); // hit: think again
      const hurry = waiting.length ? { hurry: 1 + waiting.length } : {};
      if (!waiting.length) ignored = 0;
      await take(/** @type {Position} */ (answer), before, { note, ...hurry, ...options });
    }
  } finally {
    if (!busy && waiting.length) await sendNext();
  }
  return answer;
}

/** Sends what waits; an action that is not possible by now ends the row. */
async function sendNext() {
  const [message, options] = waiting.shift();
  const why = message.do === "act" ? store.position.actions[message.action].why : undefined;
  if (why === undefined) return exchange(message, options);
  $("said").textContent =
    `${store.look.actions[message.action]}: not possible, ${why}. ${dropRow()}`;
}

/** Forgets what waits; says so. */
function dropRow() {
  const count = waiting.length + ignored;
  clearRow();
  return count ? `${countActions(count, "waiting ")} dropped.` : "";
}

const tellIgnored = () =>
  ignored ? `${countActions(ignored)} ignored: at most ${MOST_WAITING} wait.` : "";

const countActions = (count, which = "") => `${count} ${which}${count > 1 ? "actions" : "action"}`;

/** @param {Position} answer */
async function take(
  answer,
  before,
  { still = false, moved = false, hurry = 1, kept = null, same = false, note = "" } = {},
) {
  if (answer.nodes && !same) begin(kept);
  if (answer.nodes)
    Object.assign(store.game, {
      id: answer.game,
      nodes: answer.nodes.map(asNode),
      opinions: new Map(),
      odds: new Map(),
      reviews: new Map(),
      searches: new Map(),
    });
  for (const node of (answer.added ?? []).map(asNode))
    if (!store.game.nodes[node.number]) add(node);
  if (answer.nodes)
    for (const node of store.game.nodes) store.game.nodes[node.parent]?.children.push(node.number);
  for (const [number, value, sure] of answer.opinions ?? [])
    store.game.opinions.set(number, [value, sure]);
  for (const [number, win, stages] of answer.odds ?? []) store.game.odds.set(number, [win, stages]);
  if (answer.about) screen.setUp(answer.about);
  store.position = answer;
  store.game.isTask = Boolean(answer.task);
  if (answer.task && answer.added) screen.record(answer.task);
  store.game.isRoom = answer.task?.kind === "room";
  store.game.at = answer.at;
  if ((answer.nodes || answer.added) && !same && location.hash) forgetLink();
  keep(store.game, store.about, store.begun);
  for (let n = store.game.at; n > 0; n = store.game.nodes[n].parent)
    store.game.nodes[store.game.nodes[n].parent].visited = n;
  const isPlayed = Boolean(answer.added?.length) && store.about.playing && !answer.task;
  if (answer.nodes && !same) store.game.isAided = Boolean(kept?.isAided);
  if (isPlayed) store.game.isAided ||= isAided(before) || isAided(answer);
  if (isPlayed && answer.seen.over && isScored(store.game))
    recordEnd(store.game.id, answer.seen, store.game.isAided);
  if (answer.added?.length && answer.last?.by === "you" && before?.agent)
    screen.tellVerdict(before.agent, answer.last.action);
  else if (!answer.added) $("verdict").textContent = "";
  $("said").textContent = answer.last?.told.join(", ") ?? "";
  if (answer.added?.length && store.game.nodes[answer.added[0][1]].children.length > 1)
    $("said").textContent += " A variation begins here; [ and ] go to the other one.";
  if (note) $("said").textContent = [$("said").textContent, note].filter(Boolean).join(". ");
  screen.show();
  stop();
  const speed = Number($("speed").value) * hurry;
  if (!still && answer.last && speed > 0 && (moved || answer.added?.length === 1)) {
    document.body.classList.add("moving");
    if (!(await animate(answer.last.events, speed))) return;
    document.body.classList.remove("moving");
  }
  if (store.position !== answer) return;
  screen.showBoard();
  if (isPlayed && answer.seen.over === "won" && speed > 0) {
    const { row, col } = answer.seen.player;
    celebrate(row * 6 + col, speed);
  }
}

/**
 * Whether the player has help at a position: of coach, ghost or an agent.
 *
 * @param {Position} position
 */
const isAided = ({ controls, task }) =>
  !task && Boolean(controls || (store.about.reviews && ($("coach").checked || $("ghost").checked)));

const asNode = ([number, parent, action, by, step, total, stage, over]) => ({
  number,
  parent,
  action,
  by,
  step,
  total,
  stage,
  over,
  children: [],
});

/** Whether all of the game was played here by hand, and nothing was taken back. */
const isScored = ({ nodes, at }) =>
  nodes.length === nodes[at].step + 1 && nodes.every(({ by }) => by === "" || by === "you");

function add(node) {
  store.game.nodes[node.number] = node;
  store.game.nodes[node.parent].children.push(node.number);
}
