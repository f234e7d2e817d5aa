// The session of an exported page: the same Python as behind `hackmatrix play`, on Pyodide.

import { loadPyodide } from "./pyodide/pyodide.mjs";

const session = open();
session.then(
  () => postMessage({ ready: true }),
  (error) => postMessage({ failed: String(error).trim().split("\n").at(-1) }),
);

async function open() {
  const [python, archive] = await Promise.all([loadPyodide(), fetch("python.zip").then(content)]);
  python.unpackArchive(archive, "zip");
  return python.pyimport("hackmatrix.ui.page.in_browser").begin(self.name);
}

function content(answer) {
  if (!answer.ok) throw new Error(`${answer.url}: ${answer.status}`);
  return answer.arrayBuffer();
}

self.onmessage = async ({ data: { id, message } }) => {
  const answer = (await session)(JSON.stringify(message));
  postMessage({ id, answer: JSON.parse(answer) });
};
