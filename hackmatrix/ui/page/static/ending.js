// The end of a game: what happened, how far it went, and what to do next.

import { $ } from "./elements.js";
import { send } from "./exchange.js";
import { streakWords } from "./games.js";
import { isWatched, store } from "./store.js";
import { clearedBy } from "./tasks.js";
import { lineOf } from "./timeline.js";

/** @import { GhostGame, Position } from "../../session/messages" */

const SLOWLY = 0.4;
const TURNS = 3;
const PAUSE = 500; // milliseconds

/** Shows the card at the end of a game, except while an agent analyses one that was played. */
export function showEnding() {
  const { ending, last, seen, hits } = store.position;
  const { stages } = store.look;
  const isAnalysis = store.about.playing && isWatched();
  const isShown = Boolean(ending) && !store.position.task && !isAnalysis;
  const isWon = seen.over === "won";
  document.body.classList.toggle("died", isShown && !isWon);
  $("ending").hidden = !isShown;
  if (!isShown) return;
  $("ending").classList.toggle("low", seen.player.row > 2); // it does not cover who died, and of what
  $("ending").classList.toggle("won", isWon);
  $("ending-words").textContent = ending;
  $("ending-why").textContent = isWon ? "" : killers(last?.events ?? []);
  const cleared = clearedBy(seen, stages);
  const moves = store.game.nodes[store.game.at].step;
  $("ending-course").textContent = [
    `${cleared} of ${stages} stages`,
    counted(moves, "move"),
    `${counted(hits, "hit")} taken`,
    `score ${seen.player.score}`,
  ].join(" · ");
  const isMine = isWon && store.about.playing && last?.by === "you";
  $("ending-streak").textContent = !isMine
    ? ""
    : store.game.isAided
      ? "With coach, ghost or agent: it does not count for a streak."
      : `${streakWords()} Points add up in a streak: siphon data blocks, run SCORE.`;
  fillStages($("ending-stages"), cleared, "");
}

/** Shows stages as numbered squares; `whose` they are is written before them, if somebody else's stand beside. */
export function fillStages(row, cleared, whose) {
  const { stages } = store.look;
  row.setAttribute("aria-label", `${whose} ${cleared} of ${stages} stages cleared`.trim());
  row.replaceChildren(
    Object.assign(document.createElement("b"), { textContent: whose }),
    ...Array.from({ length: stages }, (_, i) =>
      Object.assign(document.createElement("span"), {
        textContent: String(i + 1),
        className: i < cleared ? "cleared" : i === cleared ? "reached" : "",
      }),
    ),
  );
}

const counted = (number, noun) => `${number} ${noun}${number === 1 ? "" : "s"}`;

/**
 * What was better than in the agent's game, else how that ended.
 *
 * @param {Position} position
 * @param {number} moves
 * @param {GhostGame} ghost
 */
export function comparison({ seen, hits }, moves, ghost) {
  const { player, over } = seen;
  const { stages } = store.look;
  const died = `The agent died on stage ${ghost.places.at(-1)[0]}`;
  if (over !== "won")
    return `${ghost.won ? "The agent won" : died}, score ${ghost.score}${
      clearedBy(seen, stages) > ghostCleared(ghost, stages) ? ": you went further" : ""
    }.`;
  if (!ghost.won) return `${died}: you did better.`;
  const fewer = ghost.places.length - 1 - moves;
  const better = [
    { by: ghost.hits - hits, words: "fewer hits" },
    { by: fewer, words: "fewer moves" },
    { by: player.score - ghost.score, words: "more points" },
  ].filter(({ by }) => by > 0);
  if (better.length)
    return `Better than the agent: ${better.map(({ by, words }) => `${by} ${by === 1 ? words.slice(0, -1) : words}`).join(", ")}.`;
  return `The agent won too: ${counted(ghost.places.length - 1, "move")}, ${counted(ghost.hits, "hit")}, score ${ghost.score}.`;
}

/** How many stages the agent cleared in its game. */
export const ghostCleared = ({ won, places }, stages) =>
  clearedBy({ over: won ? "won" : "died", stage: places.at(-1)[0] }, stages);

/** Which enemies hit the player in the last turn. */
function killers(events) {
  const hits = events
    .filter(({ kind }) => kind === "hit")
    .map(({ piece, cell }) => `${piece} at ${Math.floor(cell / 6)},${cell % 6}`);
  return hits.length ? `Killed by the ${hits.join(" and the ")}.` : "";
}

/** Shows the last actions of the game slowly. */
export async function showLastTurns() {
  const line = lineOf(store.game);
  const from = Math.max(line.length - 1 - TURNS, 0);
  await send({ do: "go", node: line[from] }, { still: true });
  for (const node of line.slice(from + 1)) {
    await new Promise((resolve) => setTimeout(resolve, PAUSE));
    if (store.game.nodes[node]?.parent !== store.game.at) return; // somebody went elsewhere
    await send({ do: "go", node }, { moved: true, hurry: SLOWLY });
  }
}
