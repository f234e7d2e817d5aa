// What is shown of the runs, as the switches say, and where the cursor is.

export const view = {
  overview: null, // the server's last answer
  axis: "steps",
  rows: 1, // that smoothing is over
  outliers: false,
  seeds: true, // a line for each seed under the mean
  zoom: null, // [low, high] of the axis
  hidden: new Set(), // names of groups
  pointed: null, // the group that alone is drawn in full colour
  cursor: null, // a place on the axis; null for the end
};

const NAMES = ["siphon", "credits", "energy", "virus", "cryptog", "daemon", "exit", "text"];
let colours = null;

/** The colour of a group of runs. */
export function colourOf(group) {
  colours ??= NAMES.map((name) =>
    getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim(),
  );
  return colours[group % colours.length];
}

/** Whether lines of a group are dashed: every other one, so that colour is not the only difference, and the ninth unlike the first. */
export const isDashed = (group) => (group + Math.floor(group / NAMES.length)) % 2 === 1;

/** Whether another group is pointed at. */
export const isFaint = (group) => view.pointed !== null && view.pointed !== group;

export const isShown = (group) => !view.hidden.has(view.overview.groups[group].name);

/** The part of the axis that all plots show. */
export function span() {
  if (view.zoom) return view.zoom;
  return [0, view.overview.ends[view.axis] || 1];
}
