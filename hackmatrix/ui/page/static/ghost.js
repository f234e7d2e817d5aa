// The ghost: the packaged agent in the same game, half transparent on the board; and its game, to compare.

import { showFigure } from "./board.js";
import { $ } from "./elements.js";
import { comparison, fillStages, ghostCleared } from "./ending.js";
import { send } from "./exchange.js";
import { ask } from "./link.js";
import { store } from "./store.js";
import { clearedBy, isDaily } from "./tasks.js";

let known = { id: null, ghost: null };

/** Shows where the agent is after as many actions, where it is on the same stage, and how it ends. */
export async function showGhost() {
  const { game, position } = store;
  const { seen, task } = position;
  const isOn = $("ghost").checked;
  const isOver = Boolean(seen.over) && (isOn || isDaily(game.id) || seen.over === "won");
  const isWanted = (isOn || isOver) && store.about.playing && store.about.reviews && !task;
  if (isWanted && known.id !== game.id) {
    known = { id: game.id, ghost: null };
    const answer = await ask({ do: "ghost" });
    if (known.id === store.game.id && answer.places) known.ghost = answer;
    return showGhost();
  }
  const ghost = isWanted ? known.ghost : null;
  const step = store.game.nodes[store.game.at].step;
  const [stage, cell] = (isOn && ghost?.places[Math.min(step, ghost.places.length - 1)]) || [];
  showFigure(stage === seen.stage ? cell : null);
  const isCompared = isOver && ghost !== null;
  $("ending-ghost").hidden = $("ghost-stages").hidden = !isCompared;
  if (!isCompared) return;
  const { stages } = store.look;
  $("ghost-words").textContent = comparison(position, step, ghost);
  fillStages($("ending-stages"), clearedBy(seen, stages), "You");
  fillStages($("ghost-stages"), ghostCleared(ghost, stages), "Agent");
}

/** How many stages the agent cleared in this game, and its score; null if that is not known. */
export function ghostEnd() {
  const { ghost, id } = known;
  if (!ghost || id !== store.game.id) return null;
  return { cleared: ghostCleared(ghost, store.look.stages), score: ghost.score };
}

/** Puts the agent's game beside the one that was played, and goes to where it leaves that. */
export async function showItsGame() {
  const { nodes } = store.game;
  const answer = await send({ do: "compare" }, { still: true });
  if (store.game.nodes !== nodes || !answer?.line) return;
  for (const number of answer.line.slice(1)) nodes[nodes[number].parent].visited = number;
  await send({ do: "go", node: answer.at }, { still: true });
}
