// The connection of an exported page to its session, in a worker; in place of that to a server.

const { page, starts } = document.body.dataset, said = document.getElementById("waking");
const waiting = new Map();
let worker, count = 0, failed = null, game = null; // the first one

/** Does what the server's does; a worker is never lost, so `restore` has nothing to do. */
export async function connect() {
  said.textContent = "Python is loading; you can look around, and moves wait for it.";
  navigator.serviceWorker?.register(new URL("offline.js", import.meta.url)).catch(() => {}); // else only with a network
}

/** Sends a message; resolves to its answer. The first position is a file, so that it is shown at once. */
export async function ask(message) {
  if (message.do === "hello") {
    const first = await (await fetch(`${page}-${Math.floor(Math.random() * starts)}.json`)).json();
    game = first.game;
    setTimeout(started);
    return first;
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
  return () => { ended = true; };
}

/** The worker; it is begun after the first picture, or when it is first asked. */
function started() {
  if (worker) return worker;
  worker = new Worker(new URL("worker.js", import.meta.url), { type: "module", name: page });
  if (page === "play") worker.postMessage({ id: 0, message: { do: "new", seed: game } });
  worker.onerror = (event) => fail(event.message ?? "its files are missing");
  worker.onmessage = ({ data }) => {
    if (data.ready) said.remove();
    else if (data.failed) fail(data.failed);
    else if (data.id) {
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

export function drop() { worker.terminate(); }
