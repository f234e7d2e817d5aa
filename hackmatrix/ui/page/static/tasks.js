// Rooms of the tutorial and puzzles, today's game, and the line that says what is to be done.

import { $ } from "./elements.js";
import { send } from "./exchange.js";
import { bestGames } from "./games.js";
import { store } from "./store.js";

/** @import { Position, Task } from "../../session/messages" */

const LEARNED = "hackmatrix-tutorial";
const SOLVING = "hackmatrix-puzzles";
const FIRST_RATING = 1000;
const SWING = 32;

export const openRoom = (number) => send({ do: "lesson", number }, { still: true });

/** Whether nobody has played or learned here yet. */
export const isNew = () => !bestGames().length && localStorage.getItem(LEARNED) === null;

/** Rating, streak and the puzzles that were done, of this browser. */
export function solving() {
  try {
    return {
      rating: FIRST_RATING,
      streak: 0,
      best: 0,
      done: [],
      ...JSON.parse(localStorage.getItem(SOLVING)),
    };
  } catch {
    return { rating: FIRST_RATING, streak: 0, best: 0, done: [] };
  }
}

/** Opens the puzzle nearest to the player's rating of those that are left. */
export function openPuzzle() {
  const { rating, done } = solving();
  return send({ do: "puzzle", rating: Math.round(rating), done }, { still: true });
}

/**
 * Takes the answer to a puzzle into rating and streak, once a puzzle (Elo, "The Rating of
 * Chessplayers", 1978).
 *
 * @param {Task} task
 */
export function record({ kind, number, of, rating, outcome }) {
  const mine = solving();
  if (kind !== "puzzle" || !outcome || mine.done.includes(number)) return;
  const isRight = outcome === "done";
  const expected = 1 / (1 + 10 ** ((rating - mine.rating) / 400));
  const done = [...mine.done, number];
  const streak = isRight ? mine.streak + 1 : 0;
  localStorage.setItem(
    SOLVING,
    JSON.stringify({
      rating: mine.rating + SWING * (Number(isRight) - expected),
      streak,
      best: Math.max(streak, mine.best),
      done: done.length < of ? done : [],
    }),
  );
}

/**
 * The line over the words: the goal of the stage, or a task and the way on.
 *
 * @param {Position} position
 */
export function showGoal({ seen, task }) {
  const outcome = task?.outcome ?? null;
  const isLast = task?.kind === "room" && task.number === task.of - 1;
  if (outcome === "done" && isLast) localStorage.setItem(LEARNED, "done");
  $("goal").classList.toggle("task", Boolean(task));
  $("goal").dataset.outcome = outcome ?? "";
  $("goal-title").textContent = task
    ? titleOf(task)
    : seen.over
      ? ""
      : `Stage ${seen.stage} of ${store.look.stages}: reach the exit`;
  $("goal-text").textContent = !task
    ? ""
    : task.kind === "puzzle"
      ? `${task.text}${standing(outcome)}`
      : outcome === "done"
        ? "Well done."
        : outcome === "lost"
          ? "Not quite."
          : task.text;
  $("task-next").hidden = !task;
  $("task-next").textContent = !outcome
    ? "Skip"
    : task.kind === "puzzle"
      ? "Next puzzle"
      : outcome === "lost"
        ? "Again"
        : isLast
          ? "Play"
          : "Next room";
  $("task-leave").hidden = !task || (outcome === "done" && isLast);
  $("welcome").hidden = Boolean(task) || !isNew() || seen.stage > 1 || seen.over !== null;
}

const titleOf = ({ kind, title, number, of }) =>
  kind === "room" ? `${number + 1} of ${of}: ${title}` : title;

function standing(outcome) {
  const { rating, streak } = solving();
  return outcome ? ` You: ${Math.round(rating)}, ${streak} in a row.` : "";
}

/** The room after this one, or the same again; after the last one a game. Or another puzzle. */
export function nextTask(newGame) {
  const { kind, number, of, outcome } = store.position.task;
  if (kind === "puzzle") {
    record({ ...store.position.task, outcome: outcome ?? "lost" });
    return openPuzzle();
  }
  if (outcome === "lost") return openRoom(number);
  if (number + 1 < of) return openRoom(number + 1);
  localStorage.setItem(LEARNED, "done");
  return newGame("");
}

/** The seed that everybody has today. */
export const today = () => new Date().toISOString().slice(0, 10).replaceAll("-", "");

/** Whether a game is one of a day. */
export const isDaily = (id) => /^20\d{6}$/.test(id);

/** Stages cleared by whom the position or the end belongs to. */
export const clearedBy = ({ over, stage }, stages) => (over === "won" ? stages : stage - 1);

/** What a game is called where it is shared: a day's by its date. */
export const nameOf = (id) =>
  isDaily(id) ? `${id.slice(0, 4)}-${id.slice(4, 6)}-${id.slice(6)}` : `game ${id}`;

/** The end of a game in lines of signs, and the agent's if it is known: stages cleared and score of each. */
export function strips(id, mine, agents, stages) {
  const squares = ({ cleared, score }) =>
    `${"🟩".repeat(cleared)}${"⬛".repeat(stages - cleared)} ${cleared} of ${stages}, score ${score}`;
  const first = `HackMatrix ${nameOf(id)}: ${squares(mine)}`;
  return agents ? `${first}\nThe agent: ${squares(agents)}` : first;
}
