// The ways that sampled futures take most, from all of them.

const APART = 4; // steps after which ways are told apart
const MOST = 3;

/**
 * The likeliest ways, the likeliest first.
 *
 * @param {{trail: number[], end: string | null}[]} futures the player's cells, and how they end
 * @returns {{trail: number[], share: number, died: boolean}[]} the cells that at least half of a way's
 *   futures pass, the share of all futures that take it, and whether half of these end in death
 */
export function likeliestWays(futures) {
  const ways = new Map();
  for (const future of futures) {
    const key = future.trail.slice(0, APART + 1).join();
    ways.set(key, [...(ways.get(key) ?? []), future]);
  }
  return [...ways.values()]
    .sort((one, other) => other.length - one.length)
    .slice(0, MOST)
    .map((way) => ({
      trail: commonTrail(way),
      share: way.length / futures.length,
      died: way.filter(({ end }) => end === "died").length * 2 >= way.length,
    }));
}

/** The cells of most futures, as far as half of all of them go together. */
function commonTrail(futures) {
  const trail = [];
  for (let left = futures; left.length * 2 >= futures.length; ) {
    const counts = new Map();
    for (const { trail: cells } of left) {
      const cell = cells[trail.length];
      if (cell !== undefined) counts.set(cell, (counts.get(cell) ?? 0) + 1);
    }
    if (!counts.size) break;
    const [next, count] = [...counts].reduce((best, one) => (one[1] > best[1] ? one : best));
    if (count * 2 < futures.length) break;
    left = left.filter(({ trail: cells }) => cells[trail.length] === next);
    trail.push(next);
  }
  return trail;
}
