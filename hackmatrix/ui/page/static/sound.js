// Sounds made of oscillators: no files. They follow the animation, and are silent where that is off.

import { $ } from "./elements.js";

// Of an event: the wave, from which frequency to which (Hz), how long (seconds), how loud.
const SOUNDS = {
  player_moved: ["triangle", 220, 260, 0.06, 0.12],
  attacked: ["sawtooth", 900, 180, 0.12, 0.12],
  destroyed: ["square", 240, 40, 0.25, 0.12],
  block_removed: ["square", 160, 60, 0.2, 0.1],
  siphoned: ["sine", 300, 900, 0.3, 0.18],
  picked_up: ["sine", 700, 1050, 0.14, 0.15],
  program_ran: ["triangle", 500, 1000, 0.2, 0.14],
  hit: ["sawtooth", 120, 55, 0.3, 0.25],
  spawned: ["sine", 180, 240, 0.15, 0.1],
  landed: ["triangle", 330, 110, 0.14, 0.12],
  stage_completed: ["triangle", 440, 1320, 0.45, 0.18],
};
let context = null;

/** Plays the sound of an event, if it has one and sound is on. */
export function sound(kind) {
  const [wave, from, to, time, volume] = SOUNDS[kind] ?? [];
  if (!wave || !$("sound").checked || document.hidden || !navigator.userActivation?.hasBeenActive)
    return;
  context ??= new AudioContext();
  const oscillator = context.createOscillator();
  const gain = context.createGain();
  const now = context.currentTime;
  oscillator.type = wave;
  oscillator.frequency.setValueAtTime(from, now);
  oscillator.frequency.exponentialRampToValueAtTime(to, now + time);
  gain.gain.setValueAtTime(volume, now);
  gain.gain.exponentialRampToValueAtTime(0.001, now + time);
  oscillator.connect(gain).connect(context.destination);
  oscillator.start(now);
  oscillator.stop(now + time);
}
