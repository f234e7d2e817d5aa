// Surprises: the positions after which the odds of winning fell, in a ranked list.

import { $ } from "./elements.js";
import { screen, send } from "./exchange.js";
import { percent } from "./panels.js";
import { store } from "./store.js";
import { lineOf } from "./timeline.js";

const SHOCK = 0.05;
const MOST = 8;
let listed = null; // the nodes of the game whose surprises are listed

/** The positions of the line after which the odds fell by SHOCK or more, the farthest fall first. */
function surprises({ odds, nodes }, line) {
  const falls = line.slice(1).map((n, i) => ({
    node: line[i],
    step: nodes[n].step,
    before: odds.get(line[i])?.[0],
    after: odds.get(n)?.[0],
  }));
  return falls
    .filter(({ before, after }) => before - after >= SHOCK)
    .sort(
      (one, other) =>
        other.before - other.after - (one.before - one.after) || one.node - other.node,
    );
}

/** Goes to the next one by rank: the position before the fall. */
export async function toSurprise() {
  const ranked = surprises(store.game, lineOf(store.game));
  if (!ranked.length) {
    screen.complain("No surprise in what was played so far: the odds never fell by 5 % at once.");
    return;
  }
  listed = store.game.nodes;
  const place = (ranked.findIndex(({ node }) => node === store.game.at) + 1) % ranked.length;
  const { node, before, after } = ranked[place];
  if (node !== store.game.at) await send({ do: "go", node }, { still: true });
  $("said").textContent =
    `Surprise ${place + 1} of ${ranked.length}: the odds of winning fall from ${percent(before)} to ${percent(after)} with the next action.`;
}

export function showSurprises(go) {
  const ranked =
    listed === store.game.nodes ? surprises(store.game, lineOf(store.game)).slice(0, MOST) : [];
  $("surprises").hidden = !ranked.length;
  $("falls").replaceChildren(
    ...ranked.map(({ node, step, before, after }) => {
      const row = document.createElement("li");
      const button = document.createElement("button");
      button.type = "button";
      button.textContent = `Step ${step}: ${percent(before)} → ${percent(after)}`;
      if (node === store.game.at) button.setAttribute("aria-current", "true");
      button.addEventListener("click", () => go(node));
      row.append(button);
      return row;
    }),
  );
}
