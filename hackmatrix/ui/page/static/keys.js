// Which key does what, and the tables of keys and rules in the dialogs.

const ARROWS = { ArrowUp: 0, ArrowDown: 1, ArrowLeft: 2, ArrowRight: 3 };
const WASD = { w: 0, s: 1, a: 2, d: 3, e: 4 };

const PLACES = "1234567890qwertyuiop"; // of owned programs, as in the original

const isLetter = (key) => /^[a-z]$/.test(key);

/** What the page writes on a program: its key, or that of its `place` among the owned ones; with the mark `shift` where WASD moves and letters need it. */
export const labelOf = (program, shift, wasd, place = -1) =>
  place >= 0
    ? (PLACES[place] ?? "").toUpperCase()
    : (wasd && isLetter(program.key) ? shift : "") + program.key.toUpperCase();

/** The action of a key press, or null. `owned` are the names of programs that keys run by their place, if they do. */
export function actionOf(event, programs, wasd, owned = null) {
  if (event.key in ARROWS) return event.shiftKey ? null : ARROWS[event.key];
  const key = event.key.toLowerCase();
  if (wasd && isLetter(key) && !event.shiftKey) return WASD[key] ?? null;
  if (key === "s" && !wasd) return 4;
  const place = owned ? PLACES.indexOf(key) : -1;
  const number = programs.findIndex((program) =>
    owned ? place >= 0 && program.name === owned[place] : program.key === key,
  );
  return number < 0 ? null : number + 5;
}

export const GENERAL = [
  ["← ↑ ↓ →", "move, or attack what stands in that direction at any distance"],
  ["S", "siphon your cell and its four neighbors"],
  [", .", "look at the step before, the step after"],
  ["Home End", "look at the first step, the last step"],
  ["[ ]", "the variation before, the variation after"],
  ["T", "threats on and off"],
  ["Shift + arrows", "move the focus over the board; Enter acts on the cell"],
  ["!", "review the game: what your moves cost, what the agent would have done"],
  ["/", "with the coach: a hint; again: more of it, then the move itself"],
  ["R Enter", "after the end: a new game"],
  ["N", "choose a seed for a new game"],
  ["?", "this table"],
];
export const WATCHING = [
  ["Space", "play, pause; at the end of what is played the agent goes on"],
  ["Enter", "let the agent take one action here"],
  [". held", "run through the game"],
  ["1 to 9", "take the agent's first to ninth suggestion"],
  ["/", "next surprise: where the odds of winning fall, the farthest fall first"],
  ["'", "next unsure move"],
];

export function fillKeys(table, programs, watching, wasd) {
  const moves = wasd
    ? [
        ["W A S D ← ↑ ↓ →", GENERAL[0][1]],
        ["E", GENERAL[1][1]],
      ]
    : GENERAL.slice(0, 2);
  const rows = [
    ...moves,
    ...GENERAL.slice(2),
    ...(watching ? WATCHING : []),
    ...programs.map((p) => [labelOf(p, "Shift + ", wasd), `${p.name}: ${p.does}`]),
  ];
  table.replaceChildren(
    ...rows.map(([keys, does]) => {
      const row = document.createElement("tr");
      const head = document.createElement("th");
      const cell = document.createElement("td");
      const kbd = document.createElement("kbd");
      kbd.textContent = keys;
      head.append(kbd);
      cell.textContent = does;
      row.append(head, cell);
      return row;
    }),
  );
}
