// What stands around the board: numbers, programs, the last step, the agent.

import { icon } from "./draw.js";
import { $ } from "./elements.js";
import { FINGERS, onHold } from "./hold.js";
import { labelOf } from "./keys.js";

/** @import { LastAction, Position, Seen, View } from "../../session/messages" */

function make(name, className, ...children) {
  const made = document.createElement(name);
  if (className) made.className = className;
  made.append(...children);
  return made;
}

const cache = new Map();

/** Draws an element again only if what it shows has changed. */
function fill(id, shown, draw) {
  const text = JSON.stringify(shown);
  if (cache.get(id) === text) return;
  cache.set(id, text);
  $(id).replaceChildren(...draw());
}

/**
 * @param {Seen} seen
 * @param {any} look
 */
export function showNumbers(seen, look) {
  const { player } = seen;
  const turns = Math.max(1, seen.next_task - seen.turn);
  const flags = ["show", "calm", "step"]
    .filter((flag) => seen[flag])
    .map((flag) => flag.toUpperCase());
  const stage = [
    ["stairs", "exit", `${seen.stage}/${look.stages}`, "stage"],
    ["hourglass", "label", String(seen.turn), "turn"],
    [
      "transmission",
      "transmission",
      (seen.calm ? "–" : String(turns)) + (seen.pending ? ` +${seen.pending}` : ""),
      "spawn in",
    ],
    ["star", "credits", String(player.score), "score"],
  ];
  fill("stage-stats", [stage, flags], () => [
    ...stage.map(stat),
    ...flags.map((flag) => make("span", "flag", flag)),
  ]);
  const hearts = Array.from({ length: look.hp }, (_, i) => i < player.hp);
  const own = [
    ["credits", "credits", String(player.credits), "credits"],
    ["energy", "energy", String(player.energy), "energy"],
    ["siphon", "siphon", String(player.siphons), "siphons"],
    ["sword", "text", String(player.attack), "attack"],
  ];
  fill("player-stats", [hearts, own], () => {
    const hp = make(
      "div",
      "stat hp",
      ...hearts.map((full) => icon("heart", full ? "danger" : "faint")),
      make("small", "", `hp ${player.hp} of ${look.hp}`),
    );
    return [hp, ...own.map(stat)];
  });
}

function stat([name, ink, number, label]) {
  return make("div", "stat", icon(name, ink), make("b", "", number), make("small", "", label));
}

/**
 * The programs, with the agent's probabilities if given; `point(action | null)`, `press(action)`
 * and, by fingers, `hold(action)` are told.
 *
 * @param {Position} position
 * @param {any} look
 * @param {number[] | null} probabilities
 * @param {any} options
 */
export function showPrograms(position, look, probabilities, { point, press, hold, wasd, places }) {
  const { seen, actions } = position;
  const entries = look.programs.map((program, i) => ({
    ...program,
    action: i + 5,
    owned: seen.owned.includes(program.name),
    why: actions[i + 5].why,
    chance: Math.round(100 * (probabilities?.[i + 5] ?? 0)),
  }));
  const draw = (list, byPlace = false) =>
    list.map((program, place) =>
      slot(program, { point, press, hold, wasd, place: byPlace ? place : -1 }),
    );
  const owned = seen.owned.map((name) => entries.find((program) => program.name === name));
  fill("owned", [owned, wasd, places], () =>
    owned.length ? draw(owned, places) : [make("p", "quiet", "None yet: siphon a program block.")],
  );
  const others = entries.filter((program) => !program.owned);
  fill("not-owned", [others.map((program) => program.name), wasd], () => draw(others));
}

function slot(program, { point, press, hold, wasd, place }) {
  const cost = make("span", "cost");
  if (program.credits) cost.append(icon("credits", "credits"), String(program.credits));
  if (program.energy) cost.append(icon("energy", "energy"), String(program.energy));
  const key = labelOf(program, "⇧", wasd, place);
  const button = make(
    "button",
    program.chance ? "program likely" : "program",
    icon(program.name, program.why === undefined ? "text" : program.owned ? "label" : "faint"),
    make("b", "", program.name, ...(program.chance ? [make("em", "", `${program.chance} %`)] : [])),
    cost,
    make("kbd", "", key),
    make("small", "", program.does),
  );
  button.type = "button";
  button.dataset.action = program.action;
  button.setAttribute("aria-disabled", String(program.why !== undefined));
  if (program.why !== undefined) button.title = program.why;
  button.addEventListener(
    "pointerenter",
    (event) => event.pointerType === "mouse" && point(program.action),
  );
  button.addEventListener("pointerleave", (event) => event.pointerType === "mouse" && point(null));
  button.addEventListener("focus", () => button.matches(":focus-visible") && point(program.action));
  button.addEventListener("blur", () => point(null));
  onHold(button, () => hold(program.action), FINGERS);
  button.addEventListener("click", () => press(program.action));
  return button;
}

/**
 * @param {LastAction | null} last
 * @param {number} total
 */
export function showLast(last, total) {
  $("reward").textContent = last ? `${signed(last.reward)} (sum ${total.toFixed(2)})` : "";
  fill("parts", last?.parts ?? null, () =>
    Object.entries(last?.parts ?? {}).map(([part, value]) =>
      make(
        "li",
        value < 0 ? "less" : "more",
        make("span", "", part.replaceAll("_", " ")),
        make("b", "", signed(value)),
      ),
    ),
  );
}

export const signed = (x) => (x > 0 ? "+" : "") + String(Number(x.toFixed(3))).replace("-", "−");

export const percent = (share) =>
  `${(100 * share).toFixed((share > 0 && share < 0.01) || (share > 0.99 && share < 1) ? 1 : 0)}\u00a0%`;

/** The odds of the position, a bar at the board's edge. */
export function showOdds(odds, look) {
  $("odds").hidden = !odds;
  if (!odds) return;
  const [win, stages] = odds;
  const words = `${percent(win)} of such games are won by the packaged agent, ${stages.toFixed(1)} of ${look.stages} stages cleared on average`;
  $("odds-bar").style.height = `${100 * win}%`;
  $("odds-win").textContent = percent(win);
  $("odds").title = words;
  $("odds").setAttribute("aria-label", words);
}

/**
 * The agent's numbers and its most probable actions, beside them what was `played` and what a
 * search tried, its `branches`; numbers of learning with `all`.
 *
 * @param {View} agent
 */
export function showAgent(
  agent,
  odds,
  look,
  isShown,
  all,
  played,
  branches,
  { point, press, why },
) {
  const learned =
    !agent || !all
      ? []
      : [
          agent.value === null ? "" : `value ${agent.value.toFixed(2)}`,
          `entropy ${agent.entropy.toFixed(2)}`,
        ];
  const expected = odds
    ? [`shipped wins ${percent(odds[0])}`, `clears ${odds[1].toFixed(1)} stages`]
    : [];
  const numbers =
    agent && isShown
      ? [...expected, ...learned, `plays ${look.actions[agent.suggests]}`]
          .filter(Boolean)
          .join(" · ")
      : agent
        ? "hidden until you moved"
        : "the game is over";
  $("agent-numbers").textContent = numbers;
  const plan =
    agent && isShown
      ? `${look.actions[agent.suggests]} ${percent(agent.probabilities[agent.suggests])}`
      : "Agent";
  $("sheet-handle").textContent = [plan, ...expected.slice(0, 1)].join(" · ");
  const best = agent && isShown ? suggestions(agent) : [];
  if (best.length && played && !best.some(([action]) => action === played.action))
    best.push([played.action, agent.probabilities[played.action]]);
  const searched = new Map(
    best.length ? branches.map(([action, ...tried]) => [action, tried]) : [],
  );
  const simulations = branches.reduce((sum, [, visits]) => sum + visits, 0);
  for (const action of searched.keys())
    if (!best.some(([known]) => known === action)) best.push([action, agent.probabilities[action]]);
  fill("bars", [best, played, agent?.suggests, branches], () =>
    best.map(([action, p], i) => {
      const bar = make("span", "bar");
      bar.style.width = `${Math.max(1, 100 * p)}%`;
      const own =
        action === played?.action
          ? [make("em", "", played.cost >= 0.005 ? `played, −${percent(played.cost)}` : "played")]
          : [];
      const button = make(
        "button",
        action === agent.suggests ? "suggested" : "",
        bar,
        make("kbd", "", String(i + 1)),
        make("span", "", look.actions[action], ...own),
        make("b", "", `${(100 * p).toFixed(p < 0.1 ? 1 : 0)} %`),
        ...sought(searched.get(action), simulations, look),
      );
      button.type = "button";
      button.addEventListener("pointerenter", () => point(action));
      button.addEventListener("pointerleave", () => point(null));
      button.addEventListener("click", () => press(action));
      const reason = make("button", "why review-only", "?");
      reason.type = "button";
      reason.title = `Why ${look.actions[action]}? Sixteen ways in which the game may go on`;
      reason.setAttribute("aria-label", reason.title);
      reason.addEventListener("click", () => why(action));
      onHold(button, () => why(action));
      return make("li", "", button, reason);
    }),
  );
}

/** What a search found of an action: a bar of its visits, the chance it sees, the sequel it tried most. */
function sought(tried, simulations, look) {
  if (!tried) return [];
  const [visits, win, line] = tried;
  const bar = make("span", "visits");
  const sees = win === null ? "" : `, sees ${percent(win)}`;
  bar.style.width = `${Math.max(1, (100 * visits) / simulations)}%`;
  return [
    bar,
    make(
      "small",
      "",
      `search: ${visits} of ${simulations} visits${sees}`,
      ...(line.length > 1
        ? [
            `; then ${line
              .slice(1)
              .map((action) => look.actions[action])
              .join(", ")}`,
          ]
        : []),
    ),
  ];
}

const MOST_BARS = 6;

/**
 * The agent's valid actions with their probabilities, most probable first.
 *
 * @param {View} agent
 */
export function suggestions(agent) {
  return agent.probabilities
    .map((p, action) => [action, p])
    .filter(([, p]) => p > 0)
    .sort((a, b) => b[1] - a[1])
    .slice(0, MOST_BARS);
}

/** What agents said: name, action, probability and value; an agent's name alone while it thinks, an error in place of an action. */
export function showOthers(others, look) {
  $("others").replaceChildren(
    ...others.map(([name, best, p, value]) => {
      const words =
        best === undefined
          ? "…"
          : p === undefined
            ? best
            : `${look.actions[best]} ${Math.round(100 * p)} %`;
      return make(
        "li",
        "",
        make("span", "", name),
        make("b", "", words),
        make(
          "small",
          "",
          value === undefined || value === null || !$("developer").checked
            ? ""
            : `value ${value.toFixed(2)}`,
        ),
      );
    }),
  );
}
