// What the page knows: the game's tree with the agent's opinions, the position shown, the server's tables.

/** @import { About, Position } from "../../session/messages" */

export const store = {
  game: {
    id: "",
    nodes: [],
    opinions: new Map(),
    odds: new Map(),
    reviews: new Map(),
    searches: new Map(),
    at: 0,
    isAided: false, // whether coach, ghost or an agent helped
  }, // nodes by number; opinions: value, best probability; odds: share of wins, stages; reviews: the agent's action, the cost of the one taken; searches: what a search tried, see Session._branches
  position: /** @type {Position} */ (null), // the last answer with a position
  look: null, // the table of shapes and colours, and the game's tables
  about: /** @type {About} */ (null), // the session: its agents, how many games, whether somebody plays
  begun: "", // with which game the session began
};

/** Whether an agent is at the controls: while watching, and while a game that was played is analysed. */
export const isWatched = () => Boolean(store.position?.controls);
