// The lists at the side, runs, alarms, checkpoints, and the plots of searches.

import { $ } from "./elements.js";
import { duration, place, said, short } from "./numbers.js";
import { colourOf, environments, isDashed, isShown, view } from "./view.js";

const make = (name, attributes = {}, ...children) => {
  const made = Object.assign(document.createElement(name), attributes);
  made.append(...children);
  return made;
};

/** Shows a list anew unless it would be the same, so that focus and scrolling stay. */
function fill(list, content, items) {
  const text = JSON.stringify(content);
  if (list.dataset.content === text) return;
  list.dataset.content = text;
  const stops = () => [...list.querySelectorAll("button, input, summary")];
  const focused = stops().indexOf(document.activeElement);
  list.replaceChildren(...items());
  if (focused >= 0) stops()[focused]?.focus();
}

const FEW = 3; // groups whose runs are all listed at first
const folds = new Map(); // by group, whether its runs are listed, once somebody chose
let isFirst = true;

/** Shows the runs in their groups; `changed()` is told when one is hidden or shown. */
export function showRuns(changed) {
  const { groups, unread, notice } = view.overview;
  if (isFirst && groups.length > FEW && matchMedia("(max-width: 860px)").matches)
    $("runs-panel").open = false; // the plots are below
  isFirst = false;
  $("reading").textContent = [
    unread ? `reading, ${Math.ceil(unread / 2 ** 20)} MB left` : "",
    notice ?? "",
  ]
    .join(" ")
    .trim();
  const told = groups.map((group) => [
    group.name,
    group.runs.map((run) => [{ ...run, silent_seconds: 0 }, stateOf(run)]),
  ]);
  fill($("runs"), [told, [...view.hidden]], () =>
    groups.map((group, i) => {
      const box = make("input", { type: "checkbox", checked: isShown(i) });
      box.onchange = () => {
        if (box.checked) view.hidden.delete(group.name);
        else view.hidden.add(group.name);
        changed();
      };
      const swatch = make("span", { className: isDashed(i) ? "swatch dashed" : "swatch" });
      swatch.style.background = colourOf(i);
      const seeds = group.runs.reduce((sum, run) => sum + run.seeds, 0);
      const lines = group.runs.map((run) => runLine(run, group));
      const isFew = groups.length <= FEW;
      const isOne = lines.length === 1;
      const fold = make(
        "details",
        { open: folds.get(group.name) ?? isFew },
        make("summary", { textContent: isOne ? stateOf(group.runs[0]) : `${lines.length} runs` }),
        ...lines,
      );
      fold.ontoggle = () => folds.set(group.name, fold.open);
      const item = make(
        "li",
        {},
        make(
          "label",
          {},
          box,
          swatch,
          make("span", { textContent: group.name }),
          make("small", {
            className: "quiet",
            textContent: [
              environments().length > 1 ? group.environment : "",
              seeds > 1 ? `${seeds} seeds` : "",
            ]
              .filter(Boolean)
              .join(", "),
          }),
        ),
        ...(isFew && isOne ? lines : [fold]),
      );
      item.dataset.group = i;
      return item;
    }),
  );
}

function runLine(run, group) {
  const progress = make("progress", {
    max: run.total || 1,
    value: run.total ? run.steps : run.update ? 1 : 0,
  });
  progress.setAttribute("aria-label", `progress of ${run.name}`);
  const done = run.total
    ? `${Math.min(100, Math.floor((100 * run.steps) / run.total))}% of ${short(run.total)} steps`
    : `${short(run.steps)} steps`;
  return make(
    "div",
    { className: `run ${run.condition.split(" ")[0]}`, title: run.path },
    make("b", {
      textContent: group.runs.length > 1 ? run.name : `update ${run.update.toLocaleString("en")}`,
    }),
    make("span", { className: "state", textContent: stateOf(run) }),
    progress,
    make("span", { textContent: done }),
  );
}

function stateOf(run) {
  if (run.condition === "running")
    return run.seconds_left === null ? "running" : `${duration(run.seconds_left)} left`;
  if (run.condition === "silent") return `no row for ${duration(run.silent_seconds)}`;
  return run.condition;
}

/** Lists the alarms of the runs that are shown; a click moves the cursor there by `go(x, metric)`. */
export function showAlarms(go) {
  const alarms = view.overview.alarms
    .filter((alarm) => isShown(alarm.group))
    .sort((a, b) => b.update - a.update);
  $("alarm-count").textContent = alarms.length || "none";
  $("alarms").hidden = !alarms.length;
  fill($("alarms"), [alarms, view.axis], () =>
    alarms.map((alarm) => {
      const button = make(
        "button",
        { type: "button" },
        make("b", { textContent: alarm.name.replaceAll("_", " ") }),
        ` ${alarm.run}, ${place(alarm.at[view.axis], view.axis)}`,
        make("small", { textContent: alarm.message }),
      );
      button.onclick = () => go(alarm.at[view.axis], alarm.metric);
      return make("li", { className: alarm.severity }, button);
    }),
  );
}

/** Lists the checkpoints of the runs that are shown. */
export function showCheckpoints() {
  const saved = view.overview.checkpoints.filter((each) => isShown(each.group));
  $("checkpoints-panel").hidden = !saved.length;
  fill($("checkpoints"), saved, () =>
    saved.map((each) => {
      const dot = make("i");
      dot.style.background = colourOf(each.group);
      const button = make("button", {
        type: "button",
        textContent: "Watch",
        hidden: !each.command,
      });
      button.setAttribute("aria-label", `Watch ${nameOf(each)}`);
      button.onclick = () => offer(each);
      const score = each.score === null ? "" : `return ${said(each.score, false)}`;
      return make(
        "li",
        {},
        dot,
        make(
          "span",
          {},
          `${each.run} ${each.update.toLocaleString("en")} `,
          make("em", { textContent: each.label }),
        ),
        make("small", { textContent: score }),
        button,
      );
    }),
  );
}

const RETURN = "train/mean_episode_return";
let sorted = { by: null, down: false };

/** Numbers by size, texts by letters after them, what is missing last. */
function compare(one, other) {
  const [a, b] = [one, other].map((text) => (text === "" ? NaN : Number(text)));
  if (!Number.isNaN(a) && !Number.isNaN(b)) return a - b;
  return (
    Number(one === "") - Number(other === "") ||
    Number(Number.isNaN(a)) - Number(Number.isNaN(b)) ||
    one.localeCompare(other)
  );
}

/** The table of the settings that differ, beside the last returns; a click on a name sorts by it. */
export function showSettings() {
  const { settings, groups, metrics } = view.overview;
  const names = ["return", ...settings.names];
  const returns = metrics.flatMap((each) => each.metrics).find(({ name }) => name === RETURN);
  const values = groups.map((_, i) => [returns?.last[i] ?? "", ...settings.values[i]].map(String));
  $("settings").hidden = groups.length < 2 || !settings.names.length;
  const table = $("settings").querySelector("table");
  const order = values.map((_, i) => i);
  const by = names.indexOf(sorted.by);
  const sign = sorted.down ? -1 : 1;
  if (by >= 0) order.sort((one, other) => sign * compare(values[one][by], values[other][by]));
  fill(table, [names, values, groups.map(({ name }) => name), sorted], () => {
    const heads = names.map((name) => {
      const button = make("button", { type: "button", textContent: name.replaceAll("_", " ") });
      button.onclick = () => {
        sorted = { by: name, down: sorted.by === name && !sorted.down };
        showSettings();
      };
      const head = make("th", { scope: "col" }, button);
      head.setAttribute(
        "aria-sort",
        sorted.by !== name ? "none" : sorted.down ? "descending" : "ascending",
      );
      return head;
    });
    return [
      make("tr", {}, make("td"), ...heads),
      ...order.map((i) => {
        const head = make("th", { scope: "row", textContent: groups[i].name });
        head.style.color = colourOf(i);
        const row = make(
          "tr",
          {},
          head,
          ...values[i].map((textContent) => make("td", { textContent })),
        );
        row.dataset.group = i;
        return row;
      }),
    ];
  });
}

/** Shows the plots of searches. */
export function showPictures() {
  const { pictures } = view.overview;
  $("search").hidden = !pictures.length;
  fill($("pictures"), pictures, () =>
    pictures.map((each) =>
      make("img", { src: each.address, alt: `Plot of the search: ${each.name}` }),
    ),
  );
}

const nameOf = (each) =>
  `${each.run}${each.seed === null ? "" : ` seed ${each.seed}`} update ${each.update.toLocaleString("en")}`;

/** Says where the cursor is, and offers the checkpoint that is nearest to it. */
export function showCursor() {
  const end = view.overview.ends[view.axis];
  const x = view.cursor ?? end;
  $("where").textContent =
    view.cursor === null ? `last: ${place(end, view.axis)}` : place(x, view.axis);
  const saved = view.overview.checkpoints.filter((each) => each.command && isShown(each.group));
  const distance = (each) => Math.abs(each.at[view.axis] - x);
  const nearest = saved.reduce(
    (best, each) => (best && distance(best) <= distance(each) ? best : each),
    null,
  );
  $("watch-here").hidden = !nearest;
  if (!nearest) return;
  $("watch-here").textContent = `Watch ${nameOf(nearest)}`;
  $("watch-here").onclick = () => offer(nearest);
}

/** Offers the ways to watch a checkpoint. */
function offer(saved) {
  $("watch-title").textContent = `Watch ${nameOf(saved)}`;
  $("command").value = saved.command;
  $("copy").textContent = "Copy";
  $("copy").onclick = async () => {
    try {
      await navigator.clipboard.writeText(saved.command);
    } catch {
      $("command").select();
      document.execCommand("copy");
    }
    $("copy").textContent = "Copied";
  };
  $("watch-page").href = saved.page;
  $("watch-grown").hidden = !saved.grown;
  $("watch-grown").href = saved.grown ?? "";
  $("watch").showModal();
}
