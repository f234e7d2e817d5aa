// What the page knows: the game's tree with the agent's opinions, the position shown, the server's tables.

export const store = {
  game: { id: "", nodes: [], opinions: new Map(), odds: new Map(), at: 0 }, // nodes by number; opinions: value, best probability; odds: share of wins, stages
  position: null, // the last answer with a position
  look: null, // the table of shapes and colours, and the game's tables
  about: null, // the session: its agents, how many games
  begun: "", // with which game the session began
};
