// The end of a game: what happened, how far it went, and what to do next.

import { send } from "./exchange.js";
import { streakWords } from "./games.js";
import { store } from "./store.js";
import { clearedBy } from "./tasks.js";
import { lineOf } from "./timeline.js";

const $ = (id) => document.getElementById(id);
const SLOWLY = 0.4;
const TURNS = 3;
const PAUSE = 500; // milliseconds

export function showEnding() {
  const { ending, last, seen } = store.position;
  const { stages } = store.look;
  const isShown = Boolean(ending) && !store.position.task;
  $("ending").hidden = !isShown;
  if (!isShown) return;
  $("ending").classList.toggle("low", seen.player.row > 2); // it does not cover who died, and of what
  const isAgents = store.about.agents.includes(last?.by);
  $("ending-words").textContent =
    `${isAgents ? ending.replace("You have", "The agent has").replace("You died", "The agent died") : ending} Score ${seen.player.score}.`;
  $("ending-why").textContent = seen.over === "died" ? killers(last?.events ?? []) : "";
  $("ending-streak").textContent =
    seen.over === "won" && store.about.playing && !isAgents ? streakWords() : "";
  const cleared = clearedBy(seen, stages);
  $("ending-stages").setAttribute("aria-label", `${cleared} of ${stages} stages cleared`);
  $("ending-stages").replaceChildren(
    ...Array.from({ length: stages }, (_, i) => {
      const stage = document.createElement("span");
      stage.textContent = String(i + 1);
      stage.className = i < cleared ? "cleared" : i === cleared ? "reached" : "";
      return stage;
    }),
  );
}

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
