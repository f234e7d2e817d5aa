// Parts that a small screen folds away: the menu, and the agent's sheet at the bottom.

const SWIPE = 24; // pixels, from a tap to a swipe

/** Lets a button open and close a part (the class `open`), and Escape close it; `told(isOpen)` is called at each change. */
export function unfold(button, part, told = (_isOpen) => {}) {
  const isOpen = () => part.classList.contains("open");
  const set = (open) => {
    if (open === isOpen()) return;
    if (!open && part.contains(document.activeElement)) button.focus(); // what has it is about to vanish
    part.classList.toggle("open", open);
    button.setAttribute("aria-expanded", String(open));
    told(open);
  };
  button.addEventListener("click", () => set(!isOpen()));
  document.addEventListener("keydown", (event) => {
    if (
      event.key === "Escape" &&
      button.checkVisibility() &&
      !document.querySelector("dialog[open]")
    )
      set(false);
  });
  return set;
}

/** A sheet: its handle is also dragged up and down, and the focus goes into it when it opens. Returns what opens it, where it is one. */
export function unfoldSheet(handle, sheet, body) {
  const set = unfold(handle, sheet, (isOpen) => isOpen && body.focus());
  let start = null;
  let swiped = false;
  handle.addEventListener("pointerdown", (event) => {
    start = event.clientY;
    swiped = false;
  });
  handle.addEventListener("pointerup", (event) => {
    const down = event.clientY - (start ?? event.clientY);
    swiped = Math.abs(down) >= SWIPE;
    start = null;
    if (swiped) set(down < 0);
  });
  handle.addEventListener(
    "click",
    (event) => {
      if (swiped && event.detail) event.stopImmediatePropagation();
      swiped = false;
    },
    true,
  );
  return () => handle.checkVisibility() && set(true);
}
