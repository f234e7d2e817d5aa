// The games of this browser: each with all that was tried in it, the newest first.

import { treeOf } from "./share.js";

const MOST = 30, DELAY = 300; // milliseconds in which changes are kept together
let timer = null, later = null, current = null;

const name = (about) => `hackmatrix-games-${about.playing ? "play" : "watch"}`;

export function keptGames(about) {
  try {
    return JSON.parse(localStorage.getItem(name(about))) ?? [];
  } catch {
    return []; // something else is there
  }
}

function write(about, games) {
  for (let count = Math.min(games.length, MOST); count > 0; count--) {
    try {
      localStorage.setItem(name(about), JSON.stringify(games.slice(0, count)));
      return;
    } catch { /* no room for the oldest */ }
  }
  localStorage.removeItem(name(about));
}

/** From now on another game is kept: one that was kept before, or a new one. */
export function begin(kept = null) { finish(); current = kept?.key ?? Date.now(); }

/** Keeps the game soon, in the place of what was kept of it. */
export function keep(game, about, begun) {
  if (current === null || game.isTask || about.shared) return;
  later = () => {
    const games = keptGames(about).filter(({ key, nodes }) => key !== current && nodes.length);
    const steps = Math.max(...game.nodes.map(({ step }) => step)), end = game.nodes.find(({ over }) => over);
    write(about, [{ key: current, begun, ...treeOf(game), steps, stage: Math.max(...game.nodes.map(({ stage }) => stage)), over: end?.over ?? null }, ...games]);
  };
  clearTimeout(timer);
  timer = setTimeout(finish, DELAY);
}

export function finish() {
  clearTimeout(timer);
  later?.();
  later = null;
}

export const remove = (about, key) => write(about, keptGames(about).filter((game) => game.key !== key));

/** The game to go on with after the page has begun: not where the server was given another one. */
export function unfinished(about, begun) {
  const last = keptGames(about)[0];
  return last && (!about.given || last.begun === begun) ? last : null;
}

/** Lists the kept games in a dialog; `open(kept)` is told. */
export function listGames(list, about, open) {
  const games = keptGames(about).filter(({ nodes }) => nodes.length);
  list.replaceChildren(...games.map((game) => {
    const row = document.createElement("li"), take = document.createElement("button"), drop = document.createElement("button");
    const ended = { won: "won", died: "lost" }[game.over] ?? game.over ?? "not over";
    const when = new Date(game.key).toLocaleString([], { dateStyle: "medium", timeStyle: "short" });
    take.textContent = `Game ${game.seed}: stage ${game.stage}, ${game.steps} moves, ${ended}`;
    take.title = `begun ${when}`;
    drop.textContent = "✕";
    drop.setAttribute("aria-label", `delete game ${game.seed}`);
    take.addEventListener("click", () => open(game));
    drop.addEventListener("click", () => { remove(about, game.key); row.remove(); });
    row.append(take, drop);
    return row;
  }));
  if (!games.length) list.append(Object.assign(document.createElement("li"), { textContent: "None yet.", className: "quiet" }));
}

const BEST = "hackmatrix-best", MOST_BEST = 10;

/** The ten best games that were played here: wins first, then by score, then by stage. */
export function bestGames() {
  try {
    return JSON.parse(localStorage.getItem(BEST)) ?? [];
  } catch {
    return [];
  }
}

/** Takes the end of a game into the best ones; a game that ended the same way counts once. */
export function recordEnd(seed, { over, stage, player: { score } }) {
  const game = { seed, won: over === "won", score, stage };
  const others = bestGames().filter((other) => JSON.stringify(other) !== JSON.stringify(game));
  const best = [...others, game].sort((one, other) => other.won - one.won || other.score - one.score || other.stage - one.stage);
  try {
    localStorage.setItem(BEST, JSON.stringify(best.slice(0, MOST_BEST)));
  } catch { /* no room: the table stays as it is */ }
}

export function listBest(list) {
  const best = bestGames();
  list.replaceChildren(...best.map(({ seed, won, score, stage }) =>
    Object.assign(document.createElement("li"), { textContent: `${won ? "won" : `stage ${stage}`}, score ${score}, game ${seed}` })));
  if (!best.length) list.append(Object.assign(document.createElement("li"), { textContent: "None yet.", className: "quiet" }));
}
