// The games of this browser: each with all that was tried in it, the best ones, and streaks of wins.

import { treeOf } from "./share.js";

const MOST = 30;
const DELAY = 300; // milliseconds in which changes are kept together
let timer = null;
let later = null;
let current = null;

const name = (about) => `hackmatrix-games-${about.playing ? "play" : "watch"}`;

export const keptGames = (about) => listed(name(about));

function write(about, games) {
  for (let count = Math.min(games.length, MOST); count > 0; count--) {
    try {
      localStorage.setItem(name(about), JSON.stringify(games.slice(0, count)));
      return;
    } catch {
      /* no room for the oldest */
    }
  }
  localStorage.removeItem(name(about));
}

/** From now on another game is kept: one that was kept before, or a new one. */
export function begin(kept = null) {
  finish();
  current = kept?.key ?? Date.now();
}

/** Keeps the game soon, in the place of what was kept of it. */
export function keep(game, about, begun) {
  if (current === null || game.isTask || about.shared) return;
  later = () => {
    const games = keptGames(about).filter(({ key, nodes }) => key !== current && nodes.length);
    const steps = Math.max(...game.nodes.map(({ step }) => step));
    const end = game.nodes.find(({ over }) => over);
    write(about, [
      {
        key: current,
        begun,
        ...treeOf(game),
        isAided: game.isAided,
        steps,
        stage: Math.max(...game.nodes.map(({ stage }) => stage)),
        over: end?.over ?? null,
      },
      ...games,
    ]);
  };
  clearTimeout(timer);
  timer = setTimeout(finish, DELAY);
}

export function finish() {
  clearTimeout(timer);
  later?.();
  later = null;
}

export const remove = (about, key) =>
  write(
    about,
    keptGames(about).filter((game) => game.key !== key),
  );

/** The game to go on with after the page has begun: not where the server was given another one. */
export function unfinished(about, begun) {
  const last = keptGames(about)[0];
  return last && (!about.given || last.begun === begun) ? last : null;
}

/** Lists the kept games in a dialog; `open(kept)` is told. */
export function listGames(list, about, open) {
  const games = keptGames(about).filter(({ nodes }) => nodes.length);
  list.replaceChildren(
    ...games.map((game) => {
      const row = document.createElement("li");
      const take = document.createElement("button");
      const drop = document.createElement("button");
      const ended = { won: "won", died: "lost" }[game.over] ?? game.over ?? "not over";
      const when = new Date(game.key).toLocaleString([], {
        dateStyle: "medium",
        timeStyle: "short",
      });
      take.textContent = `Game ${game.seed}: stage ${game.stage}, ${game.steps} ${game.steps === 1 ? "move" : "moves"}, ${ended}`;
      take.title = `begun ${when}`;
      drop.textContent = "✕";
      drop.setAttribute("aria-label", `delete game ${game.seed}`);
      take.addEventListener("click", () => open(game));
      drop.addEventListener("click", () => {
        remove(about, game.key);
        row.remove();
      });
      row.append(take, drop);
      return row;
    }),
  );
  if (!games.length) fill(list, []);
}

const BEST = "hackmatrix-best";
const STREAKS = "hackmatrix-streaks";
const MOST_BEST = 10;

function listed(name) {
  try {
    return JSON.parse(localStorage.getItem(name)) ?? [];
  } catch {
    return []; // something else is there
  }
}

function writeList(name, list) {
  try {
    localStorage.setItem(name, JSON.stringify(list));
  } catch {
    /* no room: the table stays as it is */
  }
}

/** The ten best games that were played here: wins first, then by score, then by stage. */
export const bestGames = () => listed(BEST);

/** Series of wins with no lost game between them, the greatest sum of scores first; one that goes on is `open`. */
export const bestStreaks = () => listed(STREAKS);

/** Takes the end of a game into the tables; one that ended the same way counts once, one with help for no streak. */
export function recordEnd(seed, { over, stage, player: { score } }, isAided) {
  const game = { seed, won: over === "won", score, stage };
  const others = bestGames().filter((other) => JSON.stringify(other) !== JSON.stringify(game));
  const best = [...others, game].sort(
    (one, other) => other.won - one.won || other.score - one.score || other.stage - one.stage,
  );
  writeList(BEST, best.slice(0, MOST_BEST));
  if (!isAided) recordStreak(game);
}

function recordStreak({ seed, won, score }) {
  const streaks = bestStreaks();
  const mine = streaks.find(({ open }) => open) ?? { seeds: [], score: 0, open: true };
  if (won && mine.seeds.includes(seed)) return; // played again
  const next = won
    ? { seeds: [...mine.seeds, seed], score: mine.score + score, open: true }
    : { ...mine, open: false };
  const others = streaks.filter(({ open }) => !open);
  const ranked = [...others, ...(next.seeds.length ? [next] : [])].sort(
    (one, other) => other.score - one.score || other.seeds.length - one.seeds.length,
  );
  writeList(
    STREAKS,
    ranked.filter(({ open }, place) => open || place < MOST_BEST),
  );
}

// The mean scores of agents' streaks (docs/page.md).
const AGENTS_STREAKS = [
  ["score", 179],
  ["shipped", 1.9],
  ["scripted", 1.6],
];

const winsOf = ({ seeds, score }) =>
  `${seeds.length} ${seeds.length > 1 ? "wins" : "win"} in a row, score ${score}`;

/** The streak that goes on, and the next rung of the ladder, in words; empty if there is none. */
export function streakWords() {
  const mine = bestStreaks().find(({ open }) => open);
  if (!mine) return "";
  const next = AGENTS_STREAKS.findLast(([, score]) => score > mine.score);
  return `${winsOf(mine)}.${next ? ` Next: ${next[0]}, ${next[1]}.` : " Above every agent."}`;
}

export function listBest(games, streaks, ladder) {
  fill(
    games,
    bestGames().map(
      ({ seed, won, score, stage }) =>
        `${won ? "won" : `stage ${stage}`}, score ${score}, game ${seed}`,
    ),
  );
  showLadder(ladder);
  fill(
    streaks,
    bestStreaks()
      .slice(0, MOST_BEST)
      .map((streak) => `${winsOf(streak)}${streak.open ? ", goes on" : ""}`),
  );
}

/** The rungs of the ladder, the highest first: who stands there, the score, and whether it is the player. */
function rungs() {
  const best = bestStreaks()[0];
  const mine = best ? [["you, at best", best.score, true]] : [];
  return [...mine, ...AGENTS_STREAKS].sort((one, other) => other[1] - one[1]);
}

function showLadder(list) {
  list.replaceChildren(
    ...rungs().map(([name, score, isMine]) => {
      const rung = document.createElement("li");
      rung.className = isMine ? "mine" : "";
      rung.append(
        Object.assign(document.createElement("span"), { textContent: name }),
        Object.assign(document.createElement("b"), { textContent: String(score) }),
      );
      return rung;
    }),
  );
}

function fill(list, lines) {
  list.replaceChildren(
    ...lines.map((textContent) => Object.assign(document.createElement("li"), { textContent })),
  );
  if (!lines.length)
    list.append(
      Object.assign(document.createElement("li"), { textContent: "None yet.", className: "quiet" }),
    );
}
