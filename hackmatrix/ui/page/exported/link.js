// The connection of an exported page to its session, in a worker; in place of that to a server.

const { page } = document.body.dataset;
const said = document.getElementById("waking");
const waiting = new Map();
let worker;
let count = 0;
let failed = null;

/** Does what the server's does; a worker is never lost, so `restore` has nothing to do. */
export async function connect() {
  said.textContent =
    page === "play"
      ? "Python is loading: this is an example, and your own game comes in a moment."
      : "Python is loading; you can look around, and moves wait for it.";
  navigator.serviceWorker?.register(new URL("offline.js", import.meta.url)).catch(() => {}); // else only with a network
}

/** Sends a message; resolves to its answer. The first position is a file, so that it is shown at once. */
export async function ask(message) {
  if (message.do === "hello") {
    const { about, ...first } = await (await fetch(`${page}.json`)).json();
    setTimeout(started);
    return { ...first, about: { ...about, isExample: page === "play" } };
  }
  if (failed) return { error: failed };
  const id = ++count;
  const answer = new Promise((resolve) => waiting.set(id, resolve));
  started().postMessage({ id, message });
  return answer;
}

/** Asks agents of the position that is shown; `each(agent, answer)` is told. Returns what ends it. */
export function advise(_, agents, each) {
  let ended = false;
  (async () => {
    for (const agent of agents) {
      const answer = await ask({ do: "others", agent });
      if (ended) return;
      each(agent, answer);
    }
  })();
  return () => {
    ended = true;
  };
}

/** The worker; it is begun after the first picture, or when it is first asked. */
function started() {
  if (worker) return worker;
  worker = new Worker(new URL("worker.js", import.meta.url), { type: "module", name: page });
  worker.onerror = (event) => fail(event.message ?? "its files are missing");
  worker.onmessage = ({ data }) => {
    if (data.ready) said.remove();
    else if (data.failed) fail(data.failed);
    else {
      waiting.get(data.id)(data.answer);
      waiting.delete(data.id);
    }
  };
  return worker;
}

function fail(reason) {
  failed = `Python could not be loaded (${reason}): load the page again.`;
  said.textContent = failed;
  for (const resolve of waiting.values()) resolve({ error: failed });
  waiting.clear();
}

export function drop() {
  worker.terminate();
}
