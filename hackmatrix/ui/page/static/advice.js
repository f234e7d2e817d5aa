// What every agent would do here: asked on a connection of its own, so that playing goes on.

import { advise } from "./link.js";
import { showOthers } from "./panels.js";
import { messageOf, replayOf } from "./share.js";
import { store } from "./store.js";
import { lineOf } from "./timeline.js";

const button = document.getElementById("ask-others");
let cancel = null;

/** Asks all agents and shows each answer as it comes; while they are asked, cancels. */
export function askOthers() {
  if (cancel) { stopAsking(); return; }
  const { game, about, look } = store;
  const line = lineOf(game).slice(0, game.nodes[game.at].step + 1), found = about.agents.map((name) => [name]);
  button.textContent = "Cancel";
  showOthers(found, look);
  let left = found.length;
  cancel = advise(messageOf(replayOf(game, line)), about.agents, (name, answer) => {
    const [said] = answer.others ?? [];
    found[about.agents.indexOf(name)] = said ?? [name, answer.error ?? "the game is over"];
    showOthers(found, look);
    if (--left === 0) stopAsking();
  });
}

/** Ends what goes on; answers that have come stay until the position changes. */
export function stopAsking() {
  cancel?.();
  cancel = null;
  button.textContent = "Ask all";
}
