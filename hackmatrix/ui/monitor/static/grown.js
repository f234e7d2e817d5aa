// Checkpoints of a run on the same game, side by side, at the same step.

import { $ } from "./elements.js";

const PER_SECOND = 4;
const asked = new URLSearchParams(location.search);
const run = encodeURIComponent(asked.get("run") ?? "");
let boards = [];
let playing = false;

function board(game, query) {
  const figure = document.createElement("figure");
  const picture = new Image();
  const words = document.createElement("figcaption");
  const told = document.createElement("span");
  const link = document.createElement("a");
  Object.assign(link, {
    href: game.page,
    target: "_blank",
    rel: "noopener",
    textContent: `update ${game.update.toLocaleString("en")}`,
  });
  words.append(link, " ", told);
  figure.append(words, picture);
  return {
    ...game,
    figure,
    picture,
    told,
    address: (step) => `grown/${run}/${game.update}/${step}.svg?${query}`,
  };
}

const ends = { won: "wins", died: "dies" };

/** Shows a step of every game, its end where it is over by then; resolves when all are drawn. */
function show(step) {
  $("step").value = step;
  $("where").textContent = `step ${step} of ${$("step").max}`;
  return Promise.all(
    boards.map((each) => {
      const at = Math.min(step, each.steps);
      const isOver = each.over && at === each.steps;
      each.told.textContent = isOver
        ? `${ends[each.over] ?? each.over} at step ${at}: stage ${each.stage}, score ${each.score}`
        : `step ${at} of ${each.steps}`;
      each.picture.alt = `Board of update ${each.update}, ${each.told.textContent}`;
      if (each.at === at) return null;
      each.at = at;
      each.picture.src = each.address(at);
      return each.picture.decode().catch(() => null); // another step is wanted by now
    }),
  );
}

async function play() {
  playing = !playing;
  $("play").textContent = playing ? "Pause" : "Play";
  if (playing && Number($("step").value) === Number($("step").max)) await show(0);
  while (playing && Number($("step").value) < Number($("step").max)) {
    const pause = new Promise((resolve) => setTimeout(resolve, 1000 / PER_SECOND));
    await Promise.all([show(Number($("step").value) + 1), pause]);
  }
  playing = false;
  $("play").textContent = "Play";
}

async function start() {
  const seed = asked.get("seed");
  const answer = await fetch(
    `grown/${run}${seed ? `?${new URLSearchParams({ seed })}` : ""}`,
  ).catch(() => null);
  if (!answer?.ok) {
    $("grown").replaceChildren();
    $("problem").textContent = answer
      ? await answer.text()
      : "The monitor does not answer: was it stopped?";
    $("problem").hidden = false;
    return;
  }
  const told = await answer.json();
  document.title = `HackMatrix: how ${told.run} grew up`;
  $("whose").textContent = `How ${told.run} grew up`;
  $("seed").value = told.seed;
  boards = told.games.map((game) => board(game, new URLSearchParams({ seed: told.seed })));
  $("grown").replaceChildren(...boards.map(({ figure }) => figure));
  $("step").max = Math.max(...boards.map(({ steps }) => steps));
  $("play").disabled = false;
  await show(0);
  document.body.dataset.ready = "true";
}

$("game").onsubmit = (event) => {
  event.preventDefault();
  asked.set("seed", $("seed").value);
  location.search = String(asked);
};
$("play").onclick = play;
$("step").oninput = () => {
  playing = false;
  show(Number($("step").value));
};
start();
