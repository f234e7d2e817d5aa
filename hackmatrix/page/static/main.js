// The page: keeps what is known of the game, sends what the player does, shows what comes back.

import { play as animate, stop } from "./animate.js";
import { makeBoard, moveFocus, showCells, showChances, showPreview, showThreat } from "./board.js";
import { icon, useLook } from "./draw.js";
import { actionOf, fillKeys } from "./keys.js";
import { ask, connect, drop } from "./link.js";
import { showAgent, showLast, showNumbers, showOthers, showPrograms, signed, suggestions } from "./panels.js";
import { fillRules } from "./rules.js";
import { copyLink, messageOfLink, replayOfFile, replayOfLine, saveFile } from "./share.js";
import { leaves, lineOf, showTime, surprises, unsure } from "./timeline.js";

const $ = (id) => document.getElementById(id);
const game = { id: "", nodes: [], opinions: new Map(), at: 0 };
const HINT = matchMedia("(hover: none)").matches
  ? "Tap a neighbour to move, an enemy in line to attack, yourself to siphon."
  : "Arrows move and attack, S siphons, ? lists all keys. Point at a cell or a program to see what it would do.";
let look, about, position = null, pointed = null, playing = false, busy = false, wanted = null;

// --- what comes back -------------------------------------------------------------------------------

/** Sends a message and shows the position that it leads to; one at a time, the newest waiting. */
async function send(message, options = {}) {
  if (busy) { wanted = [message, options]; return; }
  busy = true;
  const before = position;
  const answer = await ask(message);
  busy = false;
  if (answer.error) complain(answer.error);
  else if (answer.board) await take(answer, before, options);
  if (wanted) {
    const [nextMessage, nextOptions] = wanted;
    wanted = null;
    await send(nextMessage, nextOptions);
  }
  return answer;
}

async function take(answer, before, { still = false, hurry = 1 } = {}) {
  if (answer.nodes) Object.assign(game, { id: answer.game, nodes: answer.nodes.map(asNode), opinions: new Map() });
  for (const node of (answer.added ?? []).map(asNode)) if (!game.nodes[node.number]) add(node);
  if (answer.nodes) for (const node of game.nodes) game.nodes[node.parent]?.children.push(node.number);
  for (const [number, value, sure] of answer.opinions ?? []) game.opinions.set(number, [value, sure]);
  if (answer.about) setUp(answer.about);
  position = answer;
  game.at = answer.at;
  for (let n = game.at; n > 0; n = game.nodes[n].parent) game.nodes[game.nodes[n].parent].visited = n;
  if (answer.added?.length && answer.last.by === "you" && before?.agent) tellVerdict(before.agent, answer.last.action);
  else if (!answer.added) $("verdict").textContent = "";
  $("said").textContent = answer.last?.told.join(", ") ?? "";
  show();
  stop();
  const speed = Number($("speed").value) * hurry;
  if (!still && answer.last && speed > 0 && answer.added?.length === 1) {
    document.body.classList.add("moving");
    if (!(await animate(answer.last.events, speed))) return;
    document.body.classList.remove("moving");
  }
  if (position === answer) showBoard();
}

const asNode = ([number, parent, action, by, step, total, stage, over]) => ({ number, parent, action, by, step, total, stage, over, children: [] });

function add(node) {
  game.nodes[node.number] = node;
  game.nodes[node.parent].children.push(node.number);
}

function tellVerdict(agent, action) {
  const [best, p] = suggestions(agent)[0];
  const own = Math.round(100 * agent.probabilities[action]);
  $("verdict").textContent = best === action ? `The agent agrees: ${own} %.` : `The agent: ${look.actions[best]} ${Math.round(100 * p)} %, yours ${own} %.`;
}

// --- what is shown ---------------------------------------------------------------------------------

function setUp(facts) {
  about = facts;
  const watching = about.agents.length > 0;
  document.body.classList.toggle("watching", watching);
  document.title = watching ? "HackMatrix: watch" : "HackMatrix";
  $("controls").replaceChildren(...about.agents.map((name) => new Option(name, name)));
}

const isShown = () => $("chances").checked && !$("guess").checked;

/** Everything but the board, which waits until the pieces have moved. */
function show() {
  document.body.classList.remove("loading");
  $("seed").value ||= game.id;
  if (document.activeElement !== $("seed")) $("seed").value = game.id;
  showNumbers(position.seen, look);
  showPrograms(position, look, { point, press: act, wasd: $("wasd").checked });
  showLast(position.last, game.nodes[game.at].total);
  if (about.agents.length) showAgent(position.agent, look, isShown(), { point, press: act });
  $("others").replaceChildren();
  showTime(game, go);
  $("siphon").disabled = position.actions[4].why !== undefined;
  $("play").textContent = playing ? "Pause" : "Play";
  showChances(null);
  showPreview(null);
}

function showBoard() {
  document.body.classList.remove("moving");
  showCells(position.board, position.threat);
  showThreat(position.threat, $("threat").checked && !position.seen.over);
  const here = position.seen.player.row * 6 + position.seen.player.col;
  showChances(position.agent && isShown() ? position.agent.probabilities : null, here, look.neighbours);
  $("ending").hidden = !position.ending;
  $("ending").textContent = position.ending && `${position.ending} Score ${position.seen.player.score}.`;
  point(pointed);
}

/** Points at an action (or nothing): shows what it would do. */
function point(action, title = "") {
  pointed = action;
  const entry = action === null ? null : position?.actions[action];
  showPreview(entry, action === 4);
  const name = action === null ? "" : look.actions[action];
  $("info-title").textContent = title || name;
  $("info-text").textContent = entry ? describe(entry) : title ? "" : HINT;
  $("info").classList.toggle("quiet", !entry && !title);
  $("info").classList.toggle("impossible", Boolean(entry && entry.why !== undefined));
}

function describe(entry) {
  if (entry.why !== undefined) return `Not possible: ${entry.why}.`;
  const hits = entry.hits ? ` Up to ${entry.hits} ${entry.hits > 1 ? "hits" : "hit"} next turn.` : "";
  return `${entry.text}.${hits}`;
}

/** Points at a cell: what is there, and what acting on it would do. */
function hover(cell) {
  if (cell === null || !position) { point(null); return; }
  const words = position.board[cell].title;
  const action = actionAt(cell);
  point(action, words.includes(" ") ? words : `${words} empty`);
}

/** The action that a cell stands for: the own cell siphons, others go in their direction. */
function actionAt(cell) {
  const { row, col } = position.seen.player, r = Math.floor(cell / 6), c = cell % 6;
  if (r === row && c === col) return 4;
  if (r !== row && c !== col) return null;
  const direction = r > row ? 0 : r < row ? 1 : c < col ? 2 : 3;
  const isNext = Math.abs(r - row) + Math.abs(c - col) === 1;
  return isNext || position.actions[direction].cells?.includes(cell) ? direction : null;
}

function complain(text) {
  $("problem").textContent = text;
  $("problem").hidden = false;
  clearTimeout(complain.timer);
  if (position) complain.timer = setTimeout(() => { $("problem").hidden = true; }, 5000);
}

// --- what the player does --------------------------------------------------------------------------

function act(action) {
  if (!position) return;
  pause();
  const why = position.actions[action].why;
  if (why !== undefined && !busy) { point(action); $("said").textContent = `${look.actions[action]}: not possible, ${why}.`; return; }
  send({ do: "act", action });
}

const go = (node) => { if (node !== undefined && node !== game.at) send({ do: "go", node }, { still: true }); };
const look_back = () => { pause(); go(game.nodes[game.at].parent < 0 ? undefined : game.nodes[game.at].parent); };

function lookOn() {
  pause();
  const line = lineOf(game), next = line[game.nodes[game.at].step + 1];
  if (next !== undefined) go(next);
  else if (about.agents.length && !position.seen.over) return send({ do: "agent" }, { still: true });
}

async function toEnd() {
  pause();
  const line = lineOf(game);
  if (line.at(-1) !== game.at) return go(line.at(-1));
  while (about.agents.length && !position.seen.over) {
    const answer = await send({ do: "agent", steps: 50 }, { still: true });
    if (!answer?.added?.length) return;
  }
}

function toNext(nodes) {
  pause();
  const later = nodes.filter((n) => game.nodes[n].step > game.nodes[game.at].step);
  if (!nodes.length) complain("None in what was played so far.");
  else go((later.length ? later : nodes)[0]);
}

function toVariation(by) {
  const ends = leaves(game), line = lineOf(game), now = ends.indexOf(line.at(-1));
  const end = ends.at((now + by) % ends.length), step = game.nodes[game.at].step;
  let node = end;
  while (game.nodes[node].step > step) node = game.nodes[node].parent;
  if (node === game.at) node = end; // the variation begins later
  go(node);
}

function pause() { playing = false; $("play").textContent = "Play"; }

/** Plays: along what was played already, then the agent goes on; and the next game after that. */
async function play() {
  playing = !playing;
  $("play").textContent = playing ? "Pause" : "Play";
  while (playing) {
    const started = performance.now();
    const next = lineOf(game)[game.nodes[game.at].step + 1];
    if (next !== undefined) await send({ do: "go", node: next }, { still: true });
    else if (!position.seen.over) {
      const pace = Number($("pace").value);
      const answer = await send({ do: "agent" }, { still: pace >= 10, hurry: Math.max(1, pace / 2) });
      if (answer && !answer.added?.length) return pause();
    } else if (about.episodes > 1) {
      about.episodes -= 1;
      await new Promise((resolve) => setTimeout(resolve, 1500));
      if (playing) await send({ do: "new" });
    } else return pause();
    const rest = 1000 / Number($("pace").value) - (performance.now() - started);
    await new Promise((resolve) => setTimeout(resolve, Math.max(rest, 0)));
  }
}

async function newGame(seed) {
  pause();
  const answer = await send({ do: "new", seed }, { still: true });
  if (answer && !answer.error) $("seed").blur();
  $("seed").value = game.id;
}

async function open(file) {
  const replay = await replayOfFile(file);
  if (replay) send({ do: "load", replay }, { still: true });
  else complain(`${file.name} is no replay.`);
}

// --- keys, buttons, start --------------------------------------------------------------------------

function onKey(event) {
  if (event.ctrlKey || event.altKey || event.metaKey || !position || document.querySelector("dialog[open]")) return;
  if (event.target.closest("input:not([type=checkbox]):not([type=range]), select, textarea")) return;
  const keys = {
    "?": () => $("show-keys").click(), ",": look_back, ".": lookOn, Home: () => go(0), End: toEnd,
    "[": () => toVariation(-1), "]": () => toVariation(1), t: () => $("threat").click(), n: () => $("seed").select(),
  };
  const watchKeys = {
    " ": play, Enter: agentStep, "/": () => $("surprise").click(), "'": () => $("unsure").click(),
  };
  const arrow = { ArrowUp: [1, 0], ArrowDown: [-1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] }[event.key];
  const onButton = event.target.closest("button, summary") && (event.key === " " || event.key === "Enter");
  const watching = about.agents.length > 0;
  if (onButton) return;
  const action = actionOf(event, look.programs, $("wasd").checked);
  if (arrow && event.shiftKey) moveFocus(...arrow, position.seen.player.row * 6 + position.seen.player.col);
  else if (action !== null) act(action);
  else if (keys[event.key]) keys[event.key]();
  else if (watching && watchKeys[event.key]) watchKeys[event.key]();
  else if (watching && /^[1-9]$/.test(event.key) && position.agent) {
    const suggestion = suggestions(position.agent)[Number(event.key) - 1];
    if (suggestion) act(suggestion[0]);
  } else return;
  event.preventDefault();
}

const agentStep = () => { pause(); if (!position.seen.over) send({ do: "agent" }); };

function wire() {
  document.addEventListener("keydown", onKey);
  for (const select of document.querySelectorAll("select")) select.addEventListener("change", () => select.blur());
  // A click must not leave a button on which Space or Enter would act again.
  document.addEventListener("click", (event) => { if (event.detail) event.target.closest("button, input[type=checkbox], input[type=range], select")?.blur(); });
  const on = (id, does, kind = "click") => $(id).addEventListener(kind, does);
  on("new-game", (event) => { event.preventDefault(); newGame($("seed").value); }, "submit");
  on("next-game", () => newGame(""));
  on("copy-link", async () => complain(await copyLink(game, lineOf(game))));
  on("save", async () => saveFile((await ask({ do: "save" })).replay));
  on("load", () => $("file").click());
  on("file", () => { if ($("file").files[0]) open($("file").files[0]); $("file").value = ""; }, "change");
  on("show-rules", () => $("rules").showModal());
  on("show-keys", () => { fillKeys($("key-table"), look.programs, about.agents.length > 0, $("wasd").checked); $("keys").showModal(); });
  on("to-start", () => { pause(); go(0); });
  on("back", look_back);
  on("forward", lookOn);
  on("to-end", toEnd);
  on("play", play);
  on("agent-step", agentStep);
  on("surprise", () => toNext(surprises(game, lineOf(game))));
  on("unsure", () => toNext(unsure(game, lineOf(game))));
  on("scrub", () => { pause(); go(lineOf(game)[Number($("scrub").value)]); }, "input");
  on("controls", () => send({ do: "control", agent: $("controls").value }, { still: true }), "change");
  on("ask-others", async () => { const answer = await ask({ do: "others" }); if (answer.error) complain(answer.error); else showOthers(answer.others, look); });
  on("hidden", () => send({ do: "hidden", show: $("hidden").checked }, { still: true }), "change");
  for (const button of document.querySelectorAll("#pad button")) {
    const action = Number(button.dataset.action);
    button.addEventListener("click", () => act(action));
    button.addEventListener("pointerenter", (event) => event.pointerType === "mouse" && point(action));
    button.addEventListener("pointerleave", () => point(null));
  }
  for (const id of ["threat", "chances", "guess", "speed", "wasd"]) remember(id);
  addEventListener("resize", () => position && showTime(game, go));
}

/** Keeps a switch of the view in this browser, and shows the position anew when it changes. */
function remember(id) {
  const field = $(id), name = field.type === "checkbox" ? "checked" : "value";
  const kept = localStorage.getItem(`hackmatrix-${id}`);
  if (kept !== null) field[name] = name === "checked" ? kept === "true" : kept;
  else if (id === "speed" && matchMedia("(prefers-reduced-motion: reduce)").matches) field.value = "0";
  field.addEventListener("change", () => {
    localStorage.setItem(`hackmatrix-${id}`, field[name]);
    if (position) { show(); showBoard(); }
  });
}

/** Opens the line again in the new session after the connection was lost. */
function restore() {
  busy = false;
  if (!position) return send({ do: "hello" });
  const replay = replayOfLine(game, lineOf(game));
  return send({ do: "load", replay, step: game.nodes[game.at].step }, { still: true });
}

async function start() {
  const opened = connect((isLost) => document.body.classList.toggle("lost", isLost), restore);
  look = await (await fetch("look.json")).json();
  useLook(look);
  makeBoard({ hover, press: (cell) => { const action = actionAt(cell); if (action === null) hover(cell); else act(action); } });
  $("siphon").append(icon("siphon", "siphon"));
  fillRules($("rules-body"));
  wire();
  await opened;
  const hello = await send({ do: "hello" }, { still: true });
  if (hello.error) return; // it is said on the page
  const linked = messageOfLink();
  if (linked) await send(linked, { still: true });
  document.body.dataset.ready = "true";
}

// For tests: what is shown, and a lost connection.
window.hackmatrix = { game, drop, get position() { return position; }, get busy() { return busy || document.body.classList.contains("moving"); }, signed };
start();
