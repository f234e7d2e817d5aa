// Games as links, files and messages: a game is its seed and its actions, with all variations a tree.

import { one } from "./elements.js";

/** @import { Request } from "../../session/messages" */

const LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"; // of actions in links
const LONGEST = 1800; // letters of a tree in a link
const LOCAL = /^(localhost|.+\.localhost|127(\.\d+){3}|0\.0\.0\.0|\[::1?\])$/; // hosts that only this machine reaches

const actionsOf = (game, line) => line.slice(1).map((number) => game.nodes[number].action);

/** The game with all that was tried in it, as it is kept. */
export const treeOf = (game) => ({
  seed: game.id,
  nodes: game.nodes.slice(1).map(({ parent, action, by }) => [parent, action, by]),
  at: game.at,
});

/**
 * The message that opens a game: one that was kept, a file's content, or what a link says.
 *
 * @returns {Request}
 */
export function messageOf(content) {
  if (Array.isArray(content?.nodes))
    return { do: "resume", seed: content.seed, nodes: content.nodes, at: content.at };
  return { do: "load", replay: content };
}

const replay = (seed, actions) => ({ format: "hackmatrix-replay", version: 1, seed, actions });

/** The replay of a line. */
export const replayOf = (game, line) => replay(game.id, actionsOf(game, line));

/** Copies a link to the step of the line; returns what to say. */
export async function copyLink(game, line) {
  const address = publicAddress();
  const { link, isWhole } = linkOf(game, line, address ?? location.href);
  const what = isWhole ? "The link is" : "The link, which has no room for the variations, is";
  return `${what} ${(await isCopied(link.href)) ? "copied" : showLink(link)}.${address ? "" : " It opens on this machine alone."}`;
}

/**
 * Shares words and a picture, with a link to the step of the line if others reach this page: by the
 * system's dialog, else as a copy of the words. Returns what to say.
 */
export async function share(game, line, words, picture) {
  const address = publicAddress();
  const link = address && linkOf(game, line, address).link;
  if (navigator.share) {
    try {
      const files = [new File([picture], "hackmatrix.png", { type: picture.type })];
      await navigator.share({
        text: words,
        ...(link ? { url: link.href } : {}),
        ...(navigator.canShare?.({ files }) ? { files } : {}),
      });
      return "";
    } catch (error) {
      if (error.name === "AbortError") return ""; // somebody closed it
    }
  }
  if (await isCopied(link ? `${words}\n${link.href}` : words))
    return link
      ? "The result is copied, with a link."
      : "The result is copied, without a link: only this machine reaches this page.";
  return link ? `The link is ${showLink(link)}.` : words;
}

/** The address at which others reach the page: its own, or the one that it was exported for; null if neither is known. */
const publicAddress = () =>
  LOCAL.test(location.hostname) ? (one("link[rel=canonical]")?.href ?? null) : location.href;

/** A link to the step of the line, and whether it has all variations. */
function linkOf(game, line, address) {
  const link = new URL(address);
  const letters = actionsOf(game, line).map((action) => LETTERS[action]);
  const hasVariations = game.nodes.length > line.length;
  const tree = hasVariations ? lettersOf(game) : "";
  const isWhole = tree.length <= LONGEST;
  link.search = "";
  link.hash = String(
    new URLSearchParams(
      hasVariations && isWhole
        ? { seed: game.id, tree, at: game.at }
        : { seed: game.id, line: letters.join(""), step: game.nodes[game.at].step },
    ),
  );
  return { link, isWhole };
}

/** Whether the browser let the page copy. */
const isCopied = (text) =>
  Promise.resolve()
    .then(() => navigator.clipboard.writeText(text))
    .then(
      () => true,
      () => false,
    );

function showLink(link) {
  history.replaceState(null, "", location.pathname + link.hash);
  return "in the address bar";
}

/** The tree in letters: a node follows the one before it, or after `-number.` that node. */
const lettersOf = (game) =>
  game.nodes
    .slice(1)
    .map(
      ({ number, parent, action }) =>
        (parent === number - 1 ? "" : `-${parent.toString(36)}.`) + LETTERS[action],
    )
    .join("");

const nodesOf = (letters) =>
  [...letters.matchAll(/(?:-([0-9a-z]+)\.)?([a-zA-Z])/g)].map(([, parent, letter], before) => [
    parent === undefined ? before : parseInt(parent, 36),
    LETTERS.indexOf(letter),
    "link",
  ]);

/**
 * The message that opens the game of the address; null if it has none. The address forgets it.
 *
 * @returns {Request | null}
 */
export function messageOfLink() {
  const given = new URLSearchParams(location.hash.slice(1));
  const seed = given.get("seed");
  if (!seed) return null;
  forgetLink();
  if (given.has("tree"))
    return messageOf({ seed, nodes: nodesOf(given.get("tree")), at: Number(given.get("at")) });
  const actions = [...(given.get("line") ?? "")].map((letter) => LETTERS.indexOf(letter));
  const step = given.get("step");
  return { ...messageOf(replay(seed, actions)), ...(step === null ? {} : { step: Number(step) }) };
}

/** What is played from now on is no longer the game of the link. */
export const forgetLink = () => history.replaceState(null, "", location.pathname + location.search);

/** Saves the line as a replay, which every reader of replays knows, and all variations with it. */
export function saveFile(game, line) {
  const content = { ...replay(game.id, actionsOf(game, line)), ...treeOf(game) };
  const file = new Blob([`${JSON.stringify(content)}\n`], { type: "application/json" });
  const anchor = Object.assign(document.createElement("a"), {
    href: URL.createObjectURL(file),
    download: `hackmatrix-${game.id}.json`,
  });
  anchor.click();
  setTimeout(() => URL.revokeObjectURL(anchor.href), 1000);
}

/** The content of a file; null if it is no JSON. */
export async function contentOf(file) {
  try {
    return JSON.parse(await file.text());
  } catch {
    return null;
  }
}
