// The accuracy of a game, as lichess.org defines it from the chances of winning (docs/page.md).

const LEAST_WEIGHT = 0.5; // percent: how much the chance varies around a move
const MOST_WEIGHT = 12;

/** 0 to 100: the accuracy of a move that costs this share of winning. */
export const moveAccuracy = (cost) =>
  Math.min(100, Math.max(0, 103.1668 * Math.exp(-4.354 * cost) - 3.1669));

/**
 * 0 to 100: the mean of two means of the accuracies of moves. One weighs each by how much the chance
 * of winning varies around it; the other is harmonic, so that a single blunder ruins it.
 *
 * @param {(number | null)[]} costs of the moves of a game; null for those of somebody else
 * @param {number[]} chances of winning before the first move and after each
 * @returns {number}
 */
export function gameAccuracy(costs, chances) {
  const moves = weightsOf(chances)
    .map((weight, i) => ({ weight, cost: costs[i] }))
    .filter(({ cost }) => cost !== null)
    .map(({ weight, cost }) => ({ weight, accuracy: moveAccuracy(cost) }));
  const sum = (values) => values.reduce((total, value) => total + value, 0);
  const weighted =
    sum(moves.map(({ weight, accuracy }) => weight * accuracy)) /
    sum(moves.map(({ weight }) => weight));
  const harmonic = moves.length / sum(moves.map(({ accuracy }) => 1 / Math.max(1, accuracy)));
  return (weighted + harmonic) / 2;
}

/** For each move the standard deviation of the chances, in percent, in a window around it. */
function weightsOf(chances) {
  const moves = chances.length - 1;
  const size = Math.min(Math.max(Math.floor(moves / 10), 2), 8, chances.length);
  return Array.from({ length: moves }, (_, i) => {
    const start = Math.max(0, i + 2 - size);
    const window = chances.slice(start, start + size).map((chance) => 100 * chance);
    const mean = window.reduce((total, value) => total + value, 0) / size;
    const variance = window.reduce((total, value) => total + (value - mean) ** 2, 0) / size;
    return Math.min(Math.max(Math.sqrt(variance), LEAST_WEIGHT), MOST_WEIGHT);
  });
}
