// Games as links and files: a game is its seed and its actions.

const LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"; // of actions in links

const actionsOf = (game, line) => line.slice(1).map((number) => game.nodes[number].action);

export const replayOfLine = (game, line) => replay(game.id, actionsOf(game, line));
const replay = (seed, actions) => ({ format: "hackmatrix-replay", version: 1, seed, actions });

/** Puts a link to the step of the line into the address bar and the clipboard; returns what to say. */
export async function copyLink(game, line) {
  const address = new URL(location.href), letters = actionsOf(game, line).map((action) => LETTERS[action]);
  address.search = "";
  address.hash = new URLSearchParams({ seed: game.id, line: letters.join(""), step: game.nodes[game.at].step });
  history.replaceState(null, "", address);
  try {
    await navigator.clipboard.writeText(address.href);
    return "The link is copied.";
  } catch {
    return "The link is in the address bar.";
  }
}

/** The message that opens the game of the address; null if it has none. */
export function messageOfLink() {
  const given = new URLSearchParams(location.hash.slice(1));
  if (!given.get("seed")) return null;
  const actions = [...(given.get("line") ?? "")].map((letter) => LETTERS.indexOf(letter));
  const step = given.get("step");
  return { do: "load", replay: replay(given.get("seed"), actions), ...(step === null ? {} : { step: Number(step) }) };
}

export function saveFile(content) {
  const file = new Blob([JSON.stringify(content) + "\n"], { type: "application/json" });
  const anchor = Object.assign(document.createElement("a"), { href: URL.createObjectURL(file), download: `hackmatrix-${content.seed}.json` });
  anchor.click();
  setTimeout(() => URL.revokeObjectURL(anchor.href), 1000);
}

/** The content of a file; null if it is no JSON. */
export async function replayOfFile(file) {
  try {
    return JSON.parse(await file.text());
  } catch {
    return null;
  }
}
