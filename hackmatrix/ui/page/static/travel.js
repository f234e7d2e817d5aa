// What the player does: acts, looks back and on, lets the agent play.

import { $ } from "./elements.js";
import { isAsking, send } from "./exchange.js";
import { contentOf, messageOf } from "./share.js";
import { isWatched, store } from "./store.js";
import { leaves, lineOf } from "./timeline.js";
import { complain, pointOnce } from "./view.js";

let playing = false;
let isLate = false;
let isFollowing = false;

export function act(action) {
  if (!store.position) return;
  pause();
  const why = store.position.actions[action].why;
  if (why !== undefined && !isAsking()) {
    pointOnce(action);
    $("said").textContent = `${store.look.actions[action]}: not possible, ${why}.`;
    return;
  }
  send({ do: "act", action });
}

export const go = (node) => {
  if (node !== undefined && node !== store.game.at) send({ do: "go", node }, { still: true });
};
export const lookBack = () => {
  pause();
  go(
    store.game.nodes[store.game.at].parent < 0 ? undefined : store.game.nodes[store.game.at].parent,
  );
};

export function lookOn() {
  pause();
  const line = lineOf(store.game);
  const next = line[store.game.nodes[store.game.at].step + 1];
  if (next !== undefined) go(next);
  else if (isWatched() && !store.position.seen.over) return send({ do: "agent" }, { still: true });
}

export const toEndOfLine = () => {
  pause();
  go(lineOf(store.game).at(-1));
};

export async function toEnd() {
  pause();
  const line = lineOf(store.game);
  if (line.at(-1) !== store.game.at) return go(line.at(-1));
  while (isWatched() && !store.position.seen.over) {
    const answer = await send({ do: "agent", steps: 50 }, { still: true });
    if (!answer?.added?.length) return;
  }
}

export function toNext(nodes) {
  pause();
  const later = nodes.filter(
    (n) => store.game.nodes[n].step > store.game.nodes[store.game.at].step,
  );
  if (!nodes.length) complain("None in what was played so far.");
  else go((later.length ? later : nodes)[0]);
}

export function toVariation(by) {
  const ends = leaves(store.game);
  const line = lineOf(store.game);
  const now = ends.indexOf(line.at(-1));
  const end = ends.at((now + by) % ends.length);
  const step = store.game.nodes[store.game.at].step;
  let node = end;
  while (store.game.nodes[node].step > step) node = store.game.nodes[node].parent;
  if (node === store.game.at) node = end; // the variation begins later
  go(node);
}

export function pause() {
  playing = false;
  $("play").textContent = "Play";
}

/** Plays: along what was played already, then the agent goes on; and the next game after that. */
export async function play() {
  playing = !playing;
  $("play").textContent = playing ? "Pause" : "Play";
  while (playing) {
    const started = performance.now();
    const next = lineOf(store.game)[store.game.nodes[store.game.at].step + 1];
    if (next !== undefined) await send({ do: "go", node: next }, { still: true });
    else if (!store.position.seen.over) {
      const pace = Number($("pace").value);
      const answer = await send(
        { do: "agent" },
        { still: pace >= 10, hurry: Math.max(1, pace / 2) },
      );
      if (answer && !answer.added?.length) return pause();
    } else if (store.about.episodes > 1) {
      store.about.episodes -= 1;
      await new Promise((resolve) => setTimeout(resolve, 1500));
      if (playing) await send({ do: "new" });
    } else return pause();
    const rest = 1000 / Number($("pace").value) - (performance.now() - started);
    await new Promise((resolve) => setTimeout(resolve, Math.max(rest, 0)));
  }
}

export async function newGame(seed) {
  pause();
  const answer = await send({ do: "new", seed }, { still: true });
  if (answer && !answer.error) $("seed").blur();
  $("seed").value = store.game.id;
}

/** Shows what others do in a game that this page shares, step by step, the faster the more there is to show. */
export async function follow() {
  isLate = true;
  if (isFollowing) return;
  isFollowing = true;
  for (let behind = 0; isLate; isLate ||= behind > 0) {
    while (isAsking()) await new Promise((resolve) => setTimeout(resolve, 10));
    isLate = false;
    behind =
      (await send({ do: "follow" }, { moved: true, hurry: Math.max(1, behind) }))?.behind ?? 0;
  }
  isFollowing = false;
}

export async function openFile(file) {
  const content = await contentOf(file);
  if (content) send(messageOf(content), { still: true });
  else complain(`${file.name} is no replay.`);
}

export const agentStep = () => {
  pause();
  if (!store.position.seen.over) send({ do: "agent" });
};
