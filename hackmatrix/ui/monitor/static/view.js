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
const inks = new Map();

/** A colour of the game by its name, as #rrggbb. */
export function ink(name) {
  if (!inks.has(name)) {
    const style = getComputedStyle(document.documentElement);
    inks.set(name, style.getPropertyValue(`--${name}`).trim());
  }
  return inks.get(name);
}

/** The colour of a group of runs. */
export const colourOf = (group) => ink(NAMES[group % NAMES.length]);

/** The environments of the runs, in the order of the groups. */
export const environments = () => [
  ...new Set(view.overview.groups.map((each) => each.environment)),
];

/**
 * Whether lines of a group are dashed: those of every other environment, or every other group where
 * there is one environment, so that colour is not the only difference, and the ninth unlike the first.
 */
export function isDashed(group) {
  const all = environments();
  if (all.length > 1) return all.indexOf(view.overview.groups[group].environment) % 2 === 1;
  return (group + Math.floor(group / NAMES.length)) % 2 === 1;
}

/** Whether another group is pointed at. */
export const isFaint = (group) => view.pointed !== null && view.pointed !== group;

export const isShown = (group) => !view.hidden.has(view.overview.groups[group].name);

/** The part of the axis that all plots show. */
export function span() {
  if (view.zoom) return view.zoom;
  return [0, view.overview.ends[view.axis] || 1];
}
