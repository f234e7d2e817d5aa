// The coach: a light after each move of the player, and hints in three steps.

import { $ } from "./elements.js";
import { ask } from "./link.js";
import { percent } from "./panels.js";
import { isWatched, store } from "./store.js";

const FAIR = 0.02;
const BAD = 0.08; // of winning, that a move costs
let hinted = { at: null, step: 0, best: null };

const isOn = () =>
  $("coach").checked &&
  store.about.playing &&
  store.about.reviews &&
  !isWatched() &&
  !store.position.task;

/** Judges the move that led to the position shown: a light, and its words. */
export async function judgeMove() {
  const { game, position } = store;
  const { at, nodes } = game;
  $("coached").hidden = !isOn();
  if ($("coached").hidden) return;
  $("hint").disabled = Boolean(position.seen.over);
  if (hinted.at !== at) hinted = { at, step: 0, best: null };
  show("", "");
  if (nodes[at].by !== "you") return;
  if (!game.reviews.has(at)) {
    const answer = await ask({ do: "review", nodes: [at] });
    if (answer.error) return;
    for (const [number, best, cost] of answer.moves)
      if (store.game.nodes === nodes) game.reviews.set(number, [best, cost]);
  }
  if (store.game.at !== at || store.game.nodes !== nodes || hinted.step) return;
  const cost = game.reviews.get(at)[1];
  if (cost < FAIR) show("good", "Good.");
  else show(cost < BAD ? "fair" : "bad", `That cost ${percent(cost)} of winning.`);
}

function show(light, words) {
  $("light").className = light;
  $("coach-words").textContent = words;
}

/** A hint: first what kind of action, then more of it, then the action itself, which `point(action)` shows. */
export async function hint(point) {
  if (!isOn() || store.position.seen.over) return;
  const { at } = store.game;
  if (hinted.best === null) {
    const answer = await ask({ do: "others", agent: store.about.agents[0] });
    if (answer.error || store.game.at !== at) return;
    hinted = { at, step: 0, best: answer.others[0][1] };
  }
  hinted.step = Math.min(hinted.step + 1, 3);
  show("", words(hinted.best, hinted.step));
  if (hinted.step === 3) point(hinted.best);
}

function words(best, step) {
  const program = store.look.programs[best - 5];
  const attacks = store.position.actions[best].cells.length > 0;
  if (step === 1)
    return program
      ? "Hint 1 of 3: run a program."
      : best === 4
        ? "Hint 1 of 3: siphon."
        : attacks
          ? "Hint 1 of 3: attack."
          : "Hint 1 of 3: walk.";
  if (step === 2 && program)
    return `Hint 2 of 3: one that costs ${program.credits} credits and ${program.energy} energy.`;
  if (step === 2 && best < 4) return `Hint 2 of 3: along your ${best < 2 ? "column" : "row"}.`;
  return `${step === 2 ? "Hint 2 of 3" : "The agent's choice"}: ${store.look.actions[best]}.`;
}
