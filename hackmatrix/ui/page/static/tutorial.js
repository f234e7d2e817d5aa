// The tutorial's rooms, and the line that says what is to be done.

import { send } from "./exchange.js";
import { bestGames } from "./games.js";
import { store } from "./store.js";

const $ = (id) => document.getElementById(id);
const SEEN = "hackmatrix-tutorial";

export const openRoom = (number) => send({ do: "lesson", number }, { still: true });

/** Whether nobody has played or learned here yet. */
export const isNew = () => !bestGames().length && localStorage.getItem(SEEN) === null;

/** The line over the words: the goal of the stage, or the room and its way on. */
export function showGoal({ seen, lesson }) {
  const outcome = lesson?.outcome ?? null, isLast = lesson && lesson.number === lesson.of - 1;
  if (outcome === "done" && isLast) localStorage.setItem(SEEN, "done");
  $("goal").classList.toggle("lesson", Boolean(lesson));
  $("goal").dataset.outcome = outcome ?? "";
  $("goal-title").textContent = lesson ? `${lesson.number + 1} of ${lesson.of}: ${lesson.title}` : seen.over ? "" : `Stage ${seen.stage} of ${store.look.stages}: reach the exit`;
  $("goal-text").textContent = !lesson ? "" : outcome === "done" ? "Well done." : outcome === "lost" ? "Not quite." : lesson.text;
  $("room-next").hidden = !lesson;
  $("room-next").textContent = outcome === "done" ? (isLast ? "Play" : "Next room") : outcome === "lost" ? "Again" : "Skip";
  $("room-leave").hidden = !lesson || outcome === "done" && isLast;
  $("learn").hidden = Boolean(lesson) || !isNew() || seen.over !== null;
}

/** The room after this one, or the same again; after the last one a game. */
export function nextRoom(newGame) {
  const { number, of, outcome } = store.position.lesson;
  if (outcome === "lost") return openRoom(number);
  if (number + 1 < of) return openRoom(number + 1);
  localStorage.setItem(SEEN, "done");
  return newGame("");
}
