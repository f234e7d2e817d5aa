// The end of a game: what happened, how far it went, and what to do next.

import { send } from "./exchange.js";
import { store } from "./store.js";
import { lineOf } from "./timeline.js";

const $ = (id) => document.getElementById(id);
const SLOWLY = 0.4, TURNS = 3, PAUSE = 500; // milliseconds

export function showEnding() {
  const { ending, last, seen } = store.position;
  const isShown = Boolean(ending) && !store.position.task;
  $("ending").hidden = !isShown;
  if (!isShown) return;
  $("ending-words").textContent = `${ending} Score ${seen.player.score}.`;
  $("ending-why").textContent = seen.over === "died" ? (last?.told ?? []).filter((clause) => clause.endsWith("hits you")).join(", ") : "";
  const cleared = seen.over === "won" ? store.look.stages : seen.stage - 1;
  $("ending-stages").setAttribute("aria-label", `${cleared} of ${store.look.stages} stages cleared`);
  $("ending-stages").replaceChildren(...Array.from({ length: store.look.stages }, (_, i) => {
    const stage = document.createElement("span");
    stage.textContent = String(i + 1);
    stage.className = i < cleared ? "cleared" : i === cleared ? "reached" : "";
    return stage;
  }));
}

/** Shows the last actions of the game slowly. */
export async function showLastTurns() {
  const line = lineOf(store.game), from = Math.max(line.length - 1 - TURNS, 0);
  await send({ do: "go", node: line[from] }, { still: true });
  for (const node of line.slice(from + 1)) {
    await new Promise((resolve) => setTimeout(resolve, PAUSE));
    if (store.game.nodes[node]?.parent !== store.game.at) return; // somebody went elsewhere
    await send({ do: "go", node }, { moved: true, hurry: SLOWLY });
  }
}
