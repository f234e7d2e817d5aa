// The panel from which someone who never saw the game learns it.

import { icon } from "./draw.js";

const RULES = [
  [["exit", "exit"], "Reach the exit.", "Eight stages of 6 x 6 cells, each with one more enemy on its way than the last. Walk onto the exit to finish a stage; finish all eight to win. You have 3 hp, and get one back with each stage."],
  [["player", "player"], "One thing a turn.", "Move one cell (arrows), attack, or siphon; then the enemies move. Attack by going in a direction: the first enemy or transmission in that line is hit, at any distance, and you stay where you are. So you can't walk towards an enemy in your line: you shoot it. Blocks stop walking and shots."],
  [["virus", "virus"], "Virus: 2 hp, two steps a turn.", "It comes one cell nearer and hits in the same turn."],
  [["daemon", "daemon"], "Daemon: 3 hp.", "Slow and tough."],
  [["glitch", "glitch"], "Glitch: 2 hp, walks over blocks.", "No way is closed to it."],
  [["cryptog", "cryptog"], "Cryptog: 2 hp, hidden.", "You see it only in your row or column; the dashed sign is where it was seen last."],
  [["stunned", "text"], "Hit enemies lose a turn.", "An enemy that you hit and did not destroy is stunned for one turn. One that has just arrived rests for a turn too. An enemy next to you hits you for 1 hp instead of moving."],
  [["transmission", "transmission"], "Transmissions.", "Enemies on their way; the number is the turns left. One shot destroys one. They come by schedule (\"spawn in\" above the board), and from siphoning."],
  [["siphon", "siphon"], "Data siphons.", "Walk onto one to pick it up. Use one (S) to siphon your cell and its four neighbours: that gives their credits and energy, the points of data blocks, the programs of program blocks. Resources are never picked up by walking."],
  [["transmission", "danger"], "Blocks fight back.", "The red number on a block is how many transmissions come when you siphon it. Question blocks hide what they hold."],
  [["credits", "credits"], "Credits and energy pay for programs.", "Programs don't end your turn, except WAIT: run as many as you can pay for. The panel tells what each does; keys are in brackets."],
  [["star", "credits"], "Score.", "Points of siphoned data blocks. They count when you win."],
  [["heart", "danger"], "Threats.", "Red edges mark cells on which enemies in sight can hit you next turn; a notch for each hit. What an action does, and why one is not possible, stands under the board when you point at it."],
];

export function fillRules(body) {
  body.replaceChildren(...RULES.map(([[name, ink], head, text]) => {
    const line = document.createElement("p"), strong = document.createElement("strong");
    strong.textContent = head + " ";
    line.append(icon(name, ink), strong, text);
    return line;
  }));
}
