// The page's keys, buttons and start.

import { askOthers } from "./advice.js";
import { makeBoard, moveFocus } from "./board.js";
import { hint } from "./coach.js";
import { icon, useLook } from "./draw.js";
import { $, all, one, targetOf } from "./elements.js";
import { showEnding, showLastTurns } from "./ending.js";
import { forget, isBusy, screen, send } from "./exchange.js";
import { begin, finish, keep, listBest, listGames, unfinished } from "./games.js";
import { ghostEnd, showItsGame } from "./ghost.js";
import { actionOf, fillKeys } from "./keys.js";
import { connect, drop } from "./link.js";
import { suggestions } from "./panels.js";
import { drawEnd } from "./picture.js";
import { endFinishing, endReview, finishGames, review, showFutures } from "./report.js";
import { fillRules } from "./rules.js";
import { copyLink, messageOf, messageOfLink, saveFile, share, treeOf } from "./share.js";
import { isWatched, store } from "./store.js";
import { toSurprise } from "./surprises.js";
import {
  clearedBy,
  nameOf,
  nextTask,
  openPuzzle,
  openRoom,
  record,
  solving,
  strips,
  today,
} from "./tasks.js";
import { lineOf, showTime, unsure } from "./timeline.js";
import {
  act,
  agentStep,
  follow,
  go,
  lookBack,
  lookOn,
  newGame,
  openFile,
  pause,
  play,
  toEnd,
  toEndOfLine,
  toNext,
  toVariation,
} from "./travel.js";
import { unfold, unfoldSheet } from "./unfold.js";
import {
  actionAt,
  complain,
  handlers,
  hold,
  hover,
  point,
  setUp,
  show,
  showAnalysis,
  showBoard,
  tellVerdict,
} from "./view.js";

let openSheet;
let setMenu;

function onKey(event) {
  if (
    event.ctrlKey ||
    event.altKey ||
    event.metaKey ||
    !store.position ||
    document.querySelector("dialog[open]")
  )
    return;
  if (event.target.closest("input:not([type=checkbox]):not([type=range]), select, textarea"))
    return;
  const keys = {
    "?": () => $("show-keys").click(),
    ",": lookBack,
    ".": lookOn,
    Home: () => go(0),
    End: toEnd,
    "!": analyse,
    "/": () => hint(point),
    "[": () => toVariation(-1),
    "]": () => toVariation(1),
    t: () => $("threat").click(),
    n: () => {
      setMenu(true);
      $("seed").select();
    },
  };
  const watchKeys = {
    " ": play,
    Enter: agentStep,
    "/": () => $("surprise").click(),
    "'": () => $("unsure").click(),
  };
  const arrow = { ArrowUp: [1, 0], ArrowDown: [-1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] }[
    event.key
  ];
  const onButton =
    event.target.closest("button, summary") && (event.key === " " || event.key === "Enter");
  const watching = isWatched();
  if (onButton) return;
  if (event.key === "Enter" && store.position.task?.outcome) {
    nextTask(newGame);
    event.preventDefault();
    return;
  }
  if (
    store.position.seen.over &&
    !store.position.task &&
    (event.key === "r" || event.key === "R" || event.key === "Enter")
  ) {
    newGame("");
    event.preventDefault();
    return;
  }
  const action = actionOf(
    event,
    store.look.programs,
    $("wasd").checked,
    $("places").checked && !isWatched() ? store.position.seen.owned : null,
  );
  if (arrow && event.shiftKey)
    moveFocus(...arrow, store.position.seen.player.row * 6 + store.position.seen.player.col);
  else if (action !== null) act(action);
  else if (watching && watchKeys[event.key]) watchKeys[event.key]();
  else if (keys[event.key]) keys[event.key]();
  else if (watching && /^[1-9]$/.test(event.key) && store.position.agent) {
    const suggestion = suggestions(store.position.agent)[Number(event.key) - 1];
    if (suggestion) act(suggestion[0]);
  } else return;
  event.preventDefault();
}

function wire() {
  document.addEventListener("keydown", onKey);
  for (const select of document.querySelectorAll("select"))
    select.addEventListener("change", () => select.blur());
  // A click must not leave a button on which Space or Enter would act again.
  document.addEventListener("click", (event) => {
    if (event.detail)
      targetOf(event).closest("button, input[type=checkbox], input[type=range]")?.blur();
  });
  const on = (id, does, kind = "click") => $(id).addEventListener(kind, does);
  on(
    "new-game",
    (event) => {
      event.preventDefault();
      newGame($("seed").value);
      setMenu(false);
    },
    "submit",
  );
  on("next-game", () => newGame(""));
  on("copy-link", async () =>
    complain(
      store.game.isRoom
        ? "A room of the tutorial has no link."
        : await copyLink(store.game, lineOf(store.game)),
    ),
  );
  on("save", () =>
    store.game.isRoom
      ? complain("A room of the tutorial is no game to save.")
      : saveFile(store.game, lineOf(store.game)),
  );
  on("my-games", () => {
    finish();
    listGames($("kept-games"), store.about, (kept) => {
      shut("games");
      pause();
      send(messageOf(kept), { still: true, kept });
    });
    listBest($("best-games"), $("best-streaks"), $("ladder"));
    $("solving").textContent =
      `Puzzles: rating ${Math.round(solving().rating)}, at best ${solving().best} in a row.`;
    $("games").showModal();
  });
  on("tutorial", () => {
    shut("rules");
    pause();
    openRoom(0);
  });
  on("learn", () => {
    pause();
    openRoom(0);
  });
  on("task-next", () => nextTask(newGame));
  on("task-leave", () => newGame(""));
  on("analyse", analyse);
  on("review", analyse);
  on("retry", playOn);
  on("finish-games", () => {
    endFinishing();
    finishGames();
  });
  on("to-now", toEndOfLine);
  on("again", () => newGame(""));
  on("last-turns", () => {
    pause();
    showLastTurns();
  });
  on("share-end", async () => {
    const { game, look, position } = store;
    const { seen } = position;
    const mine = { cleared: clearedBy(seen, look.stages), score: seen.player.score };
    const words = strips(game.id, mine, ghostEnd(), look.stages);
    const picture = await drawEnd(nameOf(game.id), mine, ghostEnd(), look.stages);
    complain(await share(game, lineOf(game), words, picture));
  });
  on("compare", () => {
    pause();
    showItsGame();
  });
  on("daily", () => newGame(today()));
  on("puzzles", () => {
    pause();
    openPuzzle();
  });
  on("hint", () => hint(point));
  on("load", () => $("file").click());
  on(
    "file",
    () => {
      if ($("file").files[0]) openFile($("file").files[0]);
      $("file").value = "";
    },
    "change",
  );
  on("show-rules", () => $("rules").showModal());
  on("show-keys", () => {
    fillKeys($("key-table"), store.look.programs, isWatched(), $("wasd").checked);
    $("keys").showModal();
  });
  on("to-start", () => {
    pause();
    go(0);
  });
  on("back", lookBack);
  on("forward", lookOn);
  on("to-end", toEnd);
  on("play", play);
  on("agent-step", agentStep);
  on("surprise", () => {
    pause();
    toSurprise();
  });
  on("unsure", () => toNext(unsure(store.game, lineOf(store.game))));
  on(
    "scrub",
    () => {
      pause();
      go(lineOf(store.game)[Number($("scrub").value)]);
    },
    "input",
  );
  on(
    "controls",
    () => send({ do: "control", agent: $("controls").value }, { still: true }),
    "change",
  );
  on("ask-others", () => askOthers(showAnalysis));
  on("hidden", () => send({ do: "hidden", show: $("hidden").checked }, { still: true }), "change");
  for (const button of all("#pad button")) {
    const action = Number(button.dataset.action);
    button.addEventListener("click", () => act(action));
    button.addEventListener(
      "pointerenter",
      (event) => event.pointerType === "mouse" && point(action),
    );
    button.addEventListener("pointerleave", () => point(null));
  }
  for (const id of [
    "threat",
    "chances",
    "guess",
    "developer",
    "speed",
    "wasd",
    "places",
    "coach",
    "sound",
    "ghost",
    "theme",
  ])
    remember(id);
  on(
    "theme",
    () => {
      finish();
      location.reload();
    },
    "change",
  ); // what is drawn keeps its colours
  setMenu = unfold($("menu"), document.querySelector("header"));
  document.querySelector("header").addEventListener("click", (event) => {
    const pressed = targetOf(event).closest("button:not(#menu)");
    if (event.detail) pressed?.blur();
    if (pressed) setMenu(false);
  });
  addEventListener("pointerdown", (event) => {
    if (!targetOf(event).closest("header")) setMenu(false);
  });
  openSheet = unfoldSheet($("sheet-handle"), $("sheet"), $("sheet-body"));
  addEventListener("hashchange", openLink);
  addEventListener("pagehide", finish);
  addEventListener("resize", () => store.position && showTime(store.game, go));
}

/** Reviews the game; where somebody plays, an agent takes the controls first, and its opinions are shown. */
async function analyse() {
  const { task } = store.position;
  if (!store.about.reviews || (task && (task.kind === "room" || !task.outcome))) return;
  pause();
  if (!isWatched()) await send({ do: "control", agent: store.about.agents[0] }, { still: true });
  if (!isWatched()) return;
  openSheet();
  review(showAnalysis);
}

/** Plays on from the position that is shown; opinions are hidden again. */
async function playOn() {
  pause();
  endReview();
  await send({ do: "control", agent: null }, { still: true });
  $("said").textContent = "Your move: another one than before begins a variation.";
}

/** Closes a dialog for something else: the focus does not go back to the button that opened it. */
function shut(id) {
  $(id).close();
  one(":focus")?.blur();
}

/** Whether the light colours are wanted: chosen here, else by the system. */
function isLight() {
  const chosen = localStorage.getItem("hackmatrix-theme") ?? "system";
  return (
    chosen === "light" ||
    (chosen === "system" && matchMedia("(prefers-color-scheme: light)").matches)
  );
}

/** Keeps a switch of the view in this browser, and shows the position anew when it changes. */
function remember(id) {
  const field = $(id);
  const name = field.type === "checkbox" ? "checked" : "value";
  const kept = localStorage.getItem(`hackmatrix-${id}`);
  if (kept !== null) field[name] = name === "checked" ? kept === "true" : kept;
  else if (id === "speed" && matchMedia("(prefers-reduced-motion: reduce)").matches)
    field.value = "0";
  field.addEventListener("change", () => {
    localStorage.setItem(`hackmatrix-${id}`, field[name]);
    if (store.position) {
      show();
      showBoard();
    }
  });
}

/** Opens the line again in the new session after the connection was lost. */
function restore() {
  forget();
  $("controls").selectedIndex = 0; // a new session begins so
  $("hidden").checked = false;
  if (!store.position || store.about.shared) return send({ do: "hello" }, { still: true });
  const { task } = store.position;
  if (task)
    return task.kind === "room"
      ? openRoom(task.number)
      : send({ do: "puzzle", number: task.number }, { still: true });
  return send(messageOf(treeOf(store.game)), { still: true, same: true });
}

/** Opens the game of the address, if it has one. */
async function openLink() {
  const linked = store.about?.shared ? null : messageOfLink();
  if (linked) pause();
  return linked && send(linked, { still: true });
}

/** Goes on with the game that was played here last. */
async function goOn() {
  const kept = unfinished(store.about, store.begun);
  const answer = kept && (await send(messageOf(kept), { still: true, kept }));
  if (answer?.board)
    $("said").textContent = kept.nodes.length
      ? "Your last game goes on. New game begins another; My games has them all."
      : "";
  else if (store.about.isExample) await newGame("");
  else {
    begin();
    keep(store.game, store.about, store.begun);
  }
}

function lost(isLost, why = "") {
  document.body.classList.toggle("lost", isLost);
  if (why) complain(why);
}

async function start() {
  const opened = connect(lost, restore, follow);
  Object.assign(screen, { complain, record, setUp, show, showBoard, tellVerdict });
  Object.assign(handlers, { act, go, why: showFutures, end: showEnding });
  store.look = await (await fetch("look.json")).json();
  useLook(store.look, isLight());
  makeBoard({
    hover,
    swipe: act,
    hold: (cell) => hold(() => hover(cell)),
    press: (cell) => {
      const action = actionAt(cell);
      if (action === null) hover(cell);
      else act(action);
    },
  });
  $("siphon").append(icon("siphon", "siphon"));
  fillRules($("rules-body"), store.look.rules);
  wire();
  await opened;
  const hello = await send({ do: "hello" }, { still: true, same: true });
  if (hello.error) return; // it is said on the page
  store.begun = `${store.game.id}:${store.game.nodes.length}`;
  if (!store.about.shared && !(await openLink())) await goOn();
  document.body.dataset.ready = "true";
}

// For tests: what is shown, and a lost connection.
const forTests = {
  drop,
  game: store.game,
  get look() {
    return store.look;
  },
  get position() {
    return store.position;
  },
  get busy() {
    return isBusy();
  },
};
Object.defineProperty(window, "hackmatrix", { value: forTests });
start();
