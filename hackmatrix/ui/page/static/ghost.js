// The ghost: the packaged agent in the same game, half transparent on the board.

import { showFigure } from "./board.js";
import { ask } from "./link.js";
import { store } from "./store.js";

const $ = (id) => document.getElementById(id);
let known = { id: null, ghost: null };

/** Shows where the agent is after as many actions, where it is on the same stage, and how it ends. */
export async function showGhost() {
  const { game, position } = store, isOn = $("ghost").checked && store.about.playing && !position.task;
  if (isOn && known.id !== game.id) {
    known = { id: game.id, ghost: null };
    const answer = await ask({ do: "ghost" });
    if (known.id === store.game.id && answer.places) known.ghost = answer;
    return showGhost();
  }
  const ghost = isOn ? known.ghost : null, step = store.game.nodes[store.game.at].step;
  const [stage, cell] = ghost?.places[Math.min(step, ghost.places.length - 1)] ?? [];
  showFigure(ghost && stage === position.seen.stage ? cell : null);
  $("ending-ghost").textContent = ghost && position.seen.over ? `The agent ${ghost.won ? "won" : `died on stage ${ghost.places.at(-1)[0]}`}, score ${ghost.score}.` : "";
}
