// Numbers as people read them.

const UNITS = { G: 1e9, M: 1e6, k: 1e3 };

/** A large number in short: 40M, 1.3k, 250. */
export function short(value) {
  const size = Math.abs(value);
  const [letter, unit] = Object.entries(UNITS).find(([, least]) => size >= least) ?? [];
  if (unit) return Number((value / unit).toPrecision(4)) + letter;
  return size && size < 1e-3 ? value.toExponential(0) : String(Number(value.toPrecision(4)));
}

/** The value of a metric with four digits. */
export function said(value, fraction) {
  if (value === null || value === undefined) return "–";
  if (Number.isNaN(value)) return "NaN";
  if (fraction) return `${(value * 100).toPrecision(3).replace(/^(-?)0\.00\d+$/, "$10.00")}%`;
  return Math.abs(value) >= 1e5
    ? short(value)
    : Math.abs(value) >= 1000
      ? Math.round(value).toLocaleString("en")
      : value && Math.abs(value) < 1e-3
        ? value.toExponential(1)
        : String(Number(value.toPrecision(4)));
}

/** Seconds in their largest two units. */
export function duration(seconds) {
  if (seconds < 60) return `${Math.round(seconds)} s`;
  if (seconds < 3600) return `${Math.round(seconds / 60)} min`;
  if (seconds < 2 * 86400)
    return `${Math.floor(seconds / 3600)} h ${Math.floor((seconds % 3600) / 60)} min`;
  return `${Math.round(seconds / 86400)} days`;
}

/** A place on an axis. */
export function place(x, axis) {
  if (axis === "hours") return duration(x * 3600);
  return `${axis === "steps" ? "step" : "update"} ${Math.round(x).toLocaleString("en")}`;
}
