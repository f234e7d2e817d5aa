// The connection to the session: requests with answers, and a new session where the old one was lost.

/** @import { Answer, Request } from "../../session/messages" */

const REFUSED = 1013; // the server has too many sessions
const waiting = new Map();
let socket;
let count = 0;
let reopen = null;
let refused = "";

function address() {
  const found = new URL("session", location.href);
  found.protocol = found.protocol.replace("http", "ws");
  found.hash = found.search = "";
  return found;
}

/** Connects; `lost(isLost, why)` is told when the connection goes and comes, `restore()` what to send, `changed()` when others changed the game. */
export function connect(lost, restore, changed) {
  socket = new WebSocket(address());
  const opened = new Promise((resolve) => {
    socket.onopen = resolve;
  });
  socket.onmessage = (event) => {
    const answer = JSON.parse(event.data);
    if (answer.id === undefined) changed();
    const resolve = waiting.get(answer.id);
    waiting.delete(answer.id);
    if (resolve) resolve(answer);
  };
  socket.onclose = (event) => {
    refused = event.code === REFUSED ? event.reason : "";
    for (const resolve of waiting.values())
      resolve({ error: refused || "The connection was lost." });
    waiting.clear();
    lost(true, refused);
    clearTimeout(reopen);
    reopen = setTimeout(
      () =>
        connect(lost, restore, changed).then(() => {
          lost(false);
          return restore();
        }),
      1000,
    );
  };
  return opened;
}

/**
 * Sends a message; resolves to its answer.
 *
 * @param {Request} message
 * @returns {Promise<Answer>}
 */
export function ask(message) {
  if (socket.readyState !== WebSocket.OPEN)
    return Promise.resolve({ error: refused || "Not connected." });
  const id = ++count;
  socket.send(JSON.stringify({ ...message, id }));
  return new Promise((resolve) => waiting.set(id, resolve));
}

/**
 * Asks agents of the position that a message opens, in another session. Returns what ends it.
 *
 * @param {Request} opening
 * @param {string[]} agents
 * @param {(agent: string, answer: Answer) => void} each
 */
export function advise(opening, agents, each) {
  const other = new WebSocket(address());
  const left = new Set(agents);
  other.onopen = () => {
    other.send(JSON.stringify({ ...opening, id: 0 }));
    for (const [i, agent] of agents.entries())
      other.send(JSON.stringify({ do: "others", agent, id: i + 1 }));
  };
  other.onmessage = ({ data }) => {
    const answer = JSON.parse(data);
    if (answer.id === 0) return;
    left.delete(agents[answer.id - 1]);
    each(agents[answer.id - 1], answer);
  };
  other.onclose = ({ reason }) => {
    for (const agent of left) each(agent, { error: reason || "the connection was lost" });
  };
  return () => {
    other.onclose = null;
    other.close();
  };
}

/** Closes the connection as a lost network would. For tests. */
export function drop() {
  socket.close();
}
