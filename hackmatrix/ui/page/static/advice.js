// What every agent would do here: asked on a connection of its own, so that playing goes on.

import { advise } from "./link.js";
import { showOthers } from "./panels.js";
import { messageOf, replayOf } from "./share.js";
import { isWatched, store } from "./store.js";
import { lineOf } from "./timeline.js";

const button = document.getElementById("ask-others");
const A_WHILE = 400; // milliseconds
const A_LITTLE = 50;
const searching = new Set(); // agents that search and have answered once, so that they are ready
let cancel = null;
let later = null;

/** Asks all agents and shows each answer as it comes; while they are asked, cancels. `again()` shows what a search tried. */
export function askOthers(again) {
  if (cancel) {
    stopAsking();
    return;
  }
  const { about, look } = store;
  const found = about.agents.map((name) => [name]);
  ask(about.agents, again, (name, answer) => {
    const [said] = answer.others ?? [];
    found[about.agents.indexOf(name)] = said ?? [name, answer.error ?? "the game is over"];
    showOthers(found, look);
  });
  button.textContent = "Cancel";
  showOthers(found, look);
  document.getElementById("others").scrollIntoView({ block: "nearest" });
}

/** Asks the search, once it is ready, of every position that is shown for a while. */
export function followOn(again) {
  const { game, position } = store;
  if (!searching.size || !isWatched() || position.seen.over || game.searches.has(game.at)) return;
  later = setTimeout(() => ask([...searching], again), A_WHILE);
}

function ask(agents, again, each = (_name, _answer) => {}) {
  stopAsking();
  const { game } = store;
  const { at, nodes } = game;
  const line = lineOf(game).slice(0, nodes[at].step + 1);
  let left = agents.length;
  cancel = advise(messageOf(replayOf(game, line)), agents, (name, answer) => {
    if (answer.branches?.length && game.nodes === nodes) {
      searching.add(name);
      game.searches.set(at, answer.branches);
      again();
    }
    each(name, answer);
    if (--left === 0) stopAsking();
  });
}

/** Resolves once nobody is asked: other work waits for that, so that answers come first. */
export async function allAnswered() {
  while (cancel) await new Promise((resolve) => setTimeout(resolve, A_LITTLE));
}

/** Ends what goes on; answers that have come stay until the position changes. */
export function stopAsking() {
  clearTimeout(later);
  cancel?.();
  cancel = null;
  button.textContent = "Ask all";
}
