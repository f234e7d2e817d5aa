// Plays the events of an action on the old picture: moves, hits, explosions, spawns.

import { addEffect, addSprite, cellToChange, cellX, cellY, liftPieces } from "./board.js";
import { element, letters, lettersWidth, newPiece } from "./draw.js";
import { sound } from "./sound.js";

/** @import { Event } from "../../session/messages" */

const TIMES = {
  move: 110,
  attack: 190,
  hit: 190,
  land: 160,
  spawn: 150,
  siphon: 240,
  program: 260,
  stage: 260,
};
const PHASE = {
  player_moved: "move",
  enemy_moved: "move",
  attacked: "attack",
  destroyed: "attack",
  block_removed: "attack",
  changed_type: "attack",
  siphoned: "siphon",
  program_ran: "program",
  landed: "land",
  hit: "hit",
  spawned: "spawn",
  stage_completed: "stage",
  picked_up: "attack",
};
const picture = document.getElementById("picture");
let run = 0;

/** Ends what is playing; the next picture is shown as it is. */
export function stop() {
  run += 1;
}

/**
 * Plays events; resolves to false if something else was started meanwhile.
 *
 * @param {Event[]} events
 * @param {number} speed
 */
export async function play(events, speed) {
  const mine = ++run;
  const sprites = liftPieces();
  for (const batch of batches(events)) {
    const duration = TIMES[batch.phase] / speed;
    const animations = batch.events.flatMap((event) => start(event, sprites, duration) ?? []);
    await Promise.all([
      ...animations.map((a) => a.finished.catch(() => {})),
      pause(animations.length ? 0 : duration / 3),
    ]);
    if (mine !== run) return false;
  }
  return true;
}

/** A win: the board clears itself, cell by cell away from the player, who stays. */
export async function celebrate(here, speed) {
  const mine = ++run;
  const distance = (cell) =>
    Math.abs(Math.floor(cell / 6) - Math.floor(here / 6)) + Math.abs((cell % 6) - (here % 6));
  const cells = Array.from({ length: 36 }, (_, cell) => cell);
  for (let far = 1; far <= 10 && mine === run; far++) {
    sound("picked_up");
    for (const cell of cells.filter((each) => distance(each) === far)) {
      fade(cellToChange(cell), 1, 0, 300 / speed);
      burst(cell, 300 / speed, ["exit", "siphon", "credits"][cell % 3]);
    }
    await pause(90 / speed);
  }
}

const pause = (time) => new Promise((resolve) => setTimeout(resolve, time));

/**
 * Consecutive events of one phase happen at once, but a piece moves once in a batch.
 *
 * @param {Event[]} events
 */
function batches(events) {
  const found = [];
  let batch = null;
  let ends = new Set();
  for (const event of events) {
    const phase = PHASE[event.kind];
    if (!phase) continue;
    const again = phase === "move" && ends.has(event.cell);
    if (!batch || batch.phase !== phase || again || phase === "hit") {
      batch = { phase, events: [] };
      ends = new Set();
      found.push(batch);
    }
    batch.events.push(event);
    ends.add(event.to);
    if (phase === "stage") break; // what follows is on the next stage's board
  }
  return found;
}

/**
 * @param {Event} event
 * @param {any[]} sprites
 * @param {number} duration
 */
function start(event, sprites, duration) {
  sound(event.kind);
  const at = (cell, kind) => sprites.find((s) => s.cell === cell && (!kind || s.kind === kind));
  const gone = (sprite) => {
    sprites.splice(sprites.indexOf(sprite), 1);
  };
  switch (event.kind) {
    case "player_moved":
      return slide(
        sprites.find((s) => s.kind === "player"),
        event.to,
        duration,
      );
    case "enemy_moved": {
      if (event.cell === undefined) {
        const sprite = addSprite(newPiece(event.piece), event.to);
        sprites.push(sprite);
        return fade(sprite.piece, 0, 1, duration);
      }
      const sprite = at(event.cell, event.piece);
      if (!sprite) return [];
      if (event.to === undefined) {
        gone(sprite);
        return fade(sprite.piece, 1, 0, duration);
      }
      return slide(sprite, event.to, duration);
    }
    case "attacked":
      return [
        ...beam(sprites, event.cell, duration),
        ...flash(at(event.cell, event.piece), duration),
      ];
    case "destroyed": {
      const sprite = at(event.cell, event.piece);
      if (sprite) gone(sprite);
      return [
        ...(sprite ? fade(sprite.piece, 1, 0, duration) : []),
        ...burst(event.cell, duration, event.piece),
      ];
    }
    case "block_removed":
      return burst(event.cell, duration, "label");
    case "changed_type": {
      const sprite = at(event.cell);
      return flash(sprite, duration);
    }
    case "picked_up":
      return ring(event.cell, duration, "siphon");
    case "siphoned":
      return ring(event.cell, duration, "siphon");
    case "program_ran":
      return name(
        event.piece.toUpperCase(),
        sprites.find((s) => s.kind === "player"),
        duration,
      );
    case "landed": {
      if (!event.piece) return [];
      const sprite = addSprite(newPiece(event.piece), event.cell);
      sprites.push(sprite);
      return [
        sprite.piece.animate(
          [
            { opacity: 0, transform: scaled(2.2) },
            { opacity: 1, transform: scaled(1) },
          ],
          { duration, easing: "ease-in", fill: "forwards" },
        ),
      ];
    }
    case "hit":
      return lunge(
        at(event.cell, event.piece) ?? added(event, sprites),
        event.to,
        sprites.find((s) => s.kind === "player"),
        duration,
      );
    case "spawned":
      return ring(event.cell, duration, "transmission");
    case "stage_completed":
      return [
        picture.animate([{ clipPath: "inset(0)" }, { clipPath: "inset(0 0 0 100%)" }], {
          duration,
          easing: "ease-in",
        }),
      ];
    default:
      return [];
  }
}

/**
 * A piece that comes into sight as it hits.
 *
 * @param {Event} event
 * @param {any[]} sprites
 */
function added({ cell, piece }, sprites) {
  if (cell === undefined) return undefined;
  const sprite = addSprite(newPiece(piece), cell);
  sprites.push(sprite);
  return sprite;
}

const scaled = (s) => `translate(${50 * (1 - s)}px, ${50 * (1 - s)}px) scale(${s})`;

function slide(sprite, to, duration) {
  if (!sprite) return [];
  const [x, y] = [
    sprite.x + cellX(to) - cellX(sprite.cell),
    sprite.y + cellY(to) - cellY(sprite.cell),
  ];
  const animation = sprite.piece.animate(
    [
      { transform: `translate(${sprite.x}px, ${sprite.y}px)` },
      { transform: `translate(${x}px, ${y}px)` },
    ],
    { duration, easing: "ease-in-out", fill: "forwards" },
  );
  Object.assign(sprite, { x, y, cell: to });
  return [animation];
}

const fade = (piece, from, to, duration) => [
  piece.animate([{ opacity: from }, { opacity: to }], { duration, fill: "forwards" }),
];

function flash(sprite, duration) {
  if (!sprite) return [];
  return [
    sprite.holder.animate(
      [{ opacity: 1 }, { opacity: 0.15 }, { opacity: 1 }, { opacity: 0.3 }, { opacity: 1 }],
      { duration },
    ),
  ];
}

function lunge(sprite, to, player, duration) {
  const animations = player
    ? [player.holder.animate([{ opacity: 1 }, { opacity: 0.2 }, { opacity: 1 }], { duration })]
    : [];
  animations.push(
    picture.animate(
      [0, 5, -4, 2, 0].map((x) => ({ transform: `translate(${x}px, 0)` })),
      { duration },
    ),
  ); // a glitch
  const struck = element("rect", {
    x: cellX(to) + 3,
    y: cellY(to) + 3,
    width: 94,
    height: 94,
    class: "blow",
  });
  animations.push(
    addEffect(struck).animate([{ opacity: 0 }, { opacity: 0.8 }, { opacity: 0 }], {
      duration,
      fill: "forwards",
    }),
  );
  if (!sprite) return animations;
  const dx = Math.sign(cellX(to) - cellX(sprite.cell)) * 38;
  const dy = Math.sign(cellY(to) - cellY(sprite.cell)) * 38;
  const at = (x, y) => ({ transform: `translate(${x}px, ${y}px)` });
  animations.push(
    sprite.piece.animate(
      [at(sprite.x, sprite.y), at(sprite.x + dx, sprite.y + dy), at(sprite.x, sprite.y)],
      { duration, fill: "forwards" },
    ),
  );
  return animations;
}

/** The shot of the player along its line. */
function beam(sprites, cell, duration) {
  const player = sprites.find((s) => s.kind === "player");
  if (!player || (cellX(player.cell) !== cellX(cell) && cellY(player.cell) !== cellY(cell)))
    return [];
  const d = `M${cellX(player.cell) + 50} ${cellY(player.cell) + 50} L${cellX(cell) + 50} ${cellY(cell) + 50}`;
  return [
    addEffect(element("path", { d, class: "beam" })).animate([{ opacity: 1 }, { opacity: 0 }], {
      duration,
      easing: "ease-out",
      fill: "forwards",
    }),
  ];
}

function burst(cell, duration, ink) {
  const [x, y] = [cellX(cell) + 50, cellY(cell) + 50];
  return Array.from({ length: 10 }, (_, i) => {
    const angle = (i / 10) * 2 * Math.PI + 0.3;
    const far = i % 2 ? 46 : 32;
    const shard = element("rect", {
      x: x - 5,
      y: y - 5,
      width: 10,
      height: 10,
      fill: `var(--${ink}, var(--danger))`,
    });
    const to = `translate(${Math.cos(angle) * far}px, ${Math.sin(angle) * far}px)`;
    return addEffect(shard).animate(
      [
        { transform: "translate(0, 0)", opacity: 1 },
        { transform: to, opacity: 0 },
      ],
      { duration: duration * 1.3, easing: "ease-out", fill: "forwards" },
    );
  });
}

function ring(cell, duration, ink) {
  const mark = element("rect", {
    x: cellX(cell) + 8,
    y: cellY(cell) + 8,
    width: 84,
    height: 84,
    fill: "none",
    stroke: `var(--${ink})`,
    "stroke-width": 5,
  });
  return [
    addEffect(mark).animate([{ opacity: 0 }, { opacity: 1 }, { opacity: 0 }], {
      duration,
      fill: "forwards",
    }),
  ];
}

function name(text, player, duration) {
  if (!player) return [];
  const height = 22;
  const width = lettersWidth(text, height);
  const x = Math.min(Math.max(cellX(player.cell) + 50 - width / 2, 6), 594 - width);
  const y = Math.max(cellY(player.cell) - 18, 8);
  const plate = element("rect", {
    x: x - 9,
    y: y - 8,
    width: width + 18,
    height: height + 16,
    rx: 4,
    class: "tag",
  });
  return [
    addEffect(plate, letters(text, x, y, height, "siphon")).animate(
      [{ opacity: 0 }, { opacity: 1, offset: 0.2 }, { opacity: 1, offset: 0.8 }, { opacity: 0 }],
      { duration, fill: "forwards" },
    ),
  ];
}
