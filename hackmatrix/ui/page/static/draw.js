// Draws marks (shapes, texts, groups) as SVG by the table that the server gives: the look.

const SVG = "http://www.w3.org/2000/svg";
const PIECES = new Set([
  "hp",
  "player",
  "virus",
  "daemon",
  "glitch",
  "cryptog",
  "stunned",
  "disabled",
  "from_siphon",
]);
const KINDS = ["player", "virus", "daemon", "glitch", "cryptog"];
let look;

export function element(name, attributes = {}, ...children) {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children);
  return made;
}

const idOf = (shape) => `shape-${shape.replace("+", "-plus")}`;

/** Takes the look, with the light colours if they are wanted: defines its shapes in a hidden SVG, its colours as CSS variables. */
export function useLook(table, isLight) {
  look = isLight ? { ...table, colours: table.light } : table;
  document.documentElement.classList.toggle("light", isLight);
  const defs = element("defs");
  for (const [name, layers] of Object.entries(look.shapes)) {
    const paths = layers.map(([paint, width, d]) => {
      const colour = look.colours[paint] ?? "currentColor";
      return width
        ? element("path", { d, fill: "none", stroke: colour, "stroke-width": width })
        : element("path", { d, fill: colour });
    });
    defs.append(
      element(
        "g",
        { id: idOf(name), "stroke-linecap": "round", "stroke-linejoin": "round" },
        ...paths,
      ),
    );
  }
  const holder = element(
    "svg",
    { width: 0, height: 0, "aria-hidden": "true", class: "defs" },
    defs,
  );
  document.body.append(holder);
  for (const [name, colour] of Object.entries(look.colours))
    document.documentElement.style.setProperty(`--${name}`, colour);
}

export const colour = (name) => look.colours[name] ?? name;

export function shape(name, x, y, size, ink) {
  return element("use", {
    href: `#${idOf(name)}`,
    color: colour(ink),
    transform: `translate(${x} ${y}) scale(${size / look.cell})`,
  });
}

export function letters(text, x, y, height, ink) {
  const { height: rows, advance } = look.letter_size;
  const d = [...text].map((letter, i) => moved(look.letters[letter] ?? "", i * advance)).join("");
  return element("path", {
    d,
    fill: "none",
    stroke: colour(ink),
    "stroke-width": 1,
    "stroke-linecap": "round",
    "stroke-linejoin": "round",
    transform: `translate(${x} ${y}) scale(${height / rows})`,
  });
}

export function lettersWidth(text, height) {
  const { width, height: rows, advance } = look.letter_size;
  return (((text.length - 1) * advance + width) * height) / rows;
}

const moved = (path, right) =>
  path.replace(/([ML])([\d.]+) /g, (_, command, x) => `${command}${Number(x) + right} `);

function mark(m) {
  if (Array.isArray(m)) return shape(...m);
  if (m.marks) {
    const group = element("g", { transform: `translate(${m.x} ${m.y}) scale(${m.scale})` });
    group.append(...m.marks.map(mark));
    return group;
  }
  return letters(m.text, m.x, m.y, m.height, m.colour);
}

/** Draws a cell: its ground, and each of its pieces as a group of class `piece` with its kind. */
export function drawCell(group) {
  const cell = element("g", { transform: `translate(${group.x} ${group.y})` });
  const alone = [];
  for (const m of group.marks) {
    if (Array.isArray(m) && (PIECES.has(m[0]) || isFrame(m))) alone.push(m);
    else if (m.marks) cell.append(piece([m], kindOf(m.marks)));
    else cell.append(mark(m));
  }
  if (alone.length) cell.append(piece(alone, kindOf(alone)));
  return cell;
}

const isFrame = (m) => m[0] === "frame" && (m[4] === "player" || m[4] === "danger");
const kindOf = (marks) => marks.map((m) => m[0]).find((name) => KINDS.includes(name)) ?? "";

function piece(marks, kind) {
  return element("g", { class: "piece", "data-kind": kind }, ...marks.map(mark));
}

/** A piece as the board draws it when it is alone and whole. */
export function newPiece(kind) {
  return piece([[kind, ...look.places.piece, kind]], kind);
}

/** An icon for HTML. */
export function icon(name, ink) {
  return element(
    "svg",
    { viewBox: "0 0 100 100", class: "icon", "aria-hidden": "true" },
    shape(name, 0, 0, 100, ink),
  );
}
