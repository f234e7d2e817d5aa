// The picture that goes with a result that is shared: the last position, and the stages cleared.

import { colour } from "./draw.js";
import { $ } from "./elements.js";

const WIDTH = 1200;
const HEIGHT = 630; // as messengers show pictures
const BOARD = 560;
const LEFT = 660; // of the words beside the board
const SQUARE = 52;

/** The end of a game as a PNG: its name; stages cleared and score of the player, and of the agent if known. */
export async function drawEnd(name, mine, agents, stages) {
  const canvas = Object.assign(document.createElement("canvas"), { width: WIDTH, height: HEIGHT });
  const context = canvas.getContext("2d");
  context.fillStyle = colour("background");
  context.fillRect(0, 0, WIDTH, HEIGHT);
  context.drawImage(await boardImage(), 35, 35, BOARD, BOARD);
  const write = (text, y, size, ink) => {
    context.fillStyle = colour(ink);
    context.font = `600 ${size}px ui-monospace, monospace`;
    context.fillText(text, LEFT, y);
  };
  write("HACKMATRIX", 110, 58, "siphon");
  write(name, 165, 36, "label");
  const rows = agents
    ? [
        ["You", mine],
        ["The agent", agents],
      ]
    : [["You", mine]];
  for (const [i, [who, { cleared, score }]] of rows.entries()) {
    const y = 280 + 180 * i;
    write(`${who}: ${cleared} of ${stages}, score ${score}`, y, 30, "text");
    for (let stage = 0; stage < stages; stage++) {
      context.fillStyle = colour(stage < cleared ? "exit" : stage === cleared ? "danger" : "plate");
      context.fillRect(LEFT + stage * (SQUARE + 8), y + 24, SQUARE, SQUARE);
    }
  }
  return new Promise((resolve) => canvas.toBlob(resolve, "image/png"));
}

/** The board as an image: its drawing with the shapes that it uses. */
async function boardImage() {
  const board = $("picture").cloneNode(true);
  for (const layer of [...board.children]) if (!layer.matches(".ground")) layer.remove();
  board.prepend(document.querySelector(".defs defs").cloneNode(true));
  board.setAttribute("width", BOARD);
  board.setAttribute("height", BOARD);
  const text = new XMLSerializer().serializeToString(board);
  const address = URL.createObjectURL(new Blob([text], { type: "image/svg+xml" }));
  const image = new Image();
  image.src = address;
  await image.decode();
  URL.revokeObjectURL(address);
  return image;
}
