// The panel from which someone who never saw the game learns it.

import { drawScene } from "./board.js";

export function fillRules(body, rules) {
  body.replaceChildren(
    ...rules.map((rule) => {
      const line = document.createElement("p");
      const strong = document.createElement("strong");
      const words = document.createElement("span");
      strong.textContent = `${rule.title} `;
      words.append(strong, rule.text);
      line.append(drawScene(rule), words);
      return line;
    }),
  );
}
