// The review of a game: its accuracy, its worst moves, and what the packaged agent sees ahead.

import { gameAccuracy } from "./accuracy.js";
import { allAnswered } from "./advice.js";
import { showTrails } from "./board.js";
import { $ } from "./elements.js";
import { ask } from "./link.js";
import { percent } from "./panels.js";
import { store } from "./store.js";
import { lineOf } from "./timeline.js";
import { likeliestWays } from "./trails.js";

const AT_ONCE = 8;
const WORST = 5;
const TELLING = 0.01; // moves a message; moves that are listed; their least cost
const GAMES = 100;
const AT_ONCE_PLAYED = 25; // games a message
let reviewing = null;
let finishing = 0;

const actionsOf = (game, line) =>
  line.slice(1).filter((n) => !store.about.playing || game.nodes[n].by !== store.position.controls);

/** Has the actions of the line that is shown reviewed, some at once; each answer is shown. */
export async function review(again) {
  const { nodes } = store.game;
  reviewing = nodes;
  for (;;) {
    const left = actionsOf(store.game, lineOf(store.game))
      .filter((n) => !store.game.reviews.has(n))
      .slice(0, AT_ONCE);
    if (!left.length) break;
    const answer = await ask({ do: "review", nodes: left });
    if (reviewing !== nodes || store.game.nodes !== nodes || answer.error) break;
    for (const [number, best, cost] of answer.moves) store.game.reviews.set(number, [best, cost]);
    again();
  }
  if (reviewing === nodes) reviewing = null;
  again();
}

export const endReview = () => {
  reviewing = null;
};

/** The accuracy of the line that is shown, all of whose actions were reviewed. */
function accuracyOf(game, line, reviewed) {
  const costs = line.slice(1).map((n) => (reviewed.includes(n) ? game.reviews.get(n)[1] : null));
  let chance = 0.5; // before the first position whose odds are known
  const chances = line.map((n) => {
    chance = game.odds.get(n)?.[0] ?? chance;
    return chance;
  });
  return gameAccuracy(costs, chances);
}

/** The worst actions that were reviewed, the dearest first: node, the agent's action, cost. */
function worstOf(game, reviewed) {
  return reviewed
    .map((n) => [n, ...game.reviews.get(n)])
    .filter(([, , cost]) => cost >= TELLING)
    .sort((one, other) => other[2] - one[2] || one[0] - other[0])
    .slice(0, WORST);
}

export function showReport({ game, look, position }, go) {
  const actions = position.controls ? actionsOf(game, lineOf(game)) : [];
  const reviewed = actions.filter((n) => game.reviews.has(n));
  $("report").hidden = !position.controls || (!reviewing && !reviewed.length);
  if ($("report").hidden) return;
  const isDone = reviewed.length === actions.length;
  $("report-progress").hidden = isDone;
  $("report-progress").max = actions.length;
  $("report-progress").value = reviewed.length;
  $("accuracy").textContent =
    isDone && reviewed.length
      ? `accuracy ${accuracyOf(game, lineOf(game), reviewed).toFixed(0)}`
      : `${reviewed.length} of ${actions.length}`;
  const worst = worstOf(game, reviewed);
  $("worst-moves").replaceChildren(
    ...worst.map(([n, best, cost]) => {
      const row = document.createElement("li");
      const button = document.createElement("button");
      const { step, parent, action } = game.nodes[n];
      button.type = "button";
      button.textContent = `Step ${step}: ${look.actions[action]} (${store.about.playing ? "you" : "played"}): −${percent(cost)} | ${look.actions[best]} (agent)`;
      if (parent === game.at) button.setAttribute("aria-current", "true");
      button.addEventListener("click", () => go(parent));
      row.append(button);
      return row;
    }),
  );
  $("report-words").textContent = !isDone
    ? ""
    : worst.length
      ? "Each is shown before it was played: amber yours, green the agent's."
      : "No move cost 1 % of winning or more.";
}

/** Why an action: sampled futures of it, the likeliest ways drawn; and how all of them end, told. */
export async function showFutures(action) {
  const { at } = store.game;
  const answer = await ask({ do: "futures", action });
  if (answer.error || at !== store.game.at) return;
  const futures = answer.futures.map(([trail, end]) => ({ trail, end }));
  const ways = likeliestWays(futures);
  showTrails(ways);
  const count = (end) => futures.filter((future) => future.end === end).length;
  const ends = [
    ["died", "end in death"],
    ["stage", "complete the stage"],
    ["won", "win"],
  ]
    .filter(([end]) => count(end))
    .map(([end, words]) => `${count(end)} ${words}`);
  const drawn = ways.length > 1 ? `Drawn: the ${ways.length} likeliest ways, in percent.` : "";
  $("said").textContent =
    `${futures.length} futures after ${store.look.actions[action]}: ${ends.join(", ") || "all go on after 12 actions"}. ${drawn}`;
}

/** The agent finishes games from here: a bar that fills; ends where the position changes, and waits for `Ask all`. */
export async function finishGames() {
  const { at, nodes } = store.game;
  const mine = ++finishing;
  let won = 0;
  let stages = 0;
  let played = 0;
  $("finished").hidden = false;
  while (played < GAMES) {
    await allAnswered();
    const games = Math.min(AT_ONCE_PLAYED, GAMES - played);
    const answer = await ask({ do: "finish", games, first: played });
    if (mine !== finishing || store.game.at !== at || store.game.nodes !== nodes) return;
    if (answer.error) {
      $("finished-words").textContent = answer.error;
      return;
    }
    for (const [isWon, cleared] of answer.finished) {
      won += Number(isWon);
      stages += cleared;
    }
    played += answer.finished.length;
    $("finished-bar").style.width = `${(100 * played) / GAMES}%`;
    $("finished-bar").style.setProperty("--won", `${(100 * won) / played}%`);
    $("finished-words").textContent =
      `${played} games from here: ${percent(won / played)} won, ${(stages / played).toFixed(1)} stages cleared`;
  }
}

export function endFinishing() {
  finishing += 1;
  $("finished").hidden = true;
  $("finished-bar").style.width = "0";
  $("finished-words").textContent = "";
}
