// Holding something down, as a finger does for a closer look.

export const FINGERS = ["touch", "pen"];
const HOLD = 450;
const STILL = 10; // milliseconds from a click to holding; pixels that a finger may stray

/** Calls `does(event)` when an element is held by one of the pointers; that is no click then. */
export function onHold(held, does, pointers = [...FINGERS, "mouse"]) {
  let timer = null;
  let isHeld = false;
  let start = null;
  const end = () => clearTimeout(timer);
  held.addEventListener("pointerdown", (event) => {
    isHeld = false;
    end();
    if (!event.isPrimary || !pointers.includes(event.pointerType)) return;
    start = [event.clientX, event.clientY];
    timer = setTimeout(() => {
      isHeld = true;
      does(event);
    }, HOLD);
  });
  held.addEventListener("pointermove", (event) => {
    if (start && Math.hypot(event.clientX - start[0], event.clientY - start[1]) > STILL) end();
  });
  for (const kind of ["pointerup", "pointerleave", "pointercancel"])
    held.addEventListener(kind, end);
  held.addEventListener(
    "click",
    (event) => {
      if (isHeld && event.detail) event.stopImmediatePropagation();
      isHeld = false;
    },
    true,
  );
  held.addEventListener("contextmenu", (event) => {
    if (pointers.includes(event.pointerType)) event.preventDefault();
  });
}
