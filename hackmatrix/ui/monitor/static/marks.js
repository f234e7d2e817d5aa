// What is drawn behind and over the curves: healthy ranges, alarms, checkpoints, broken values.

import { colourOf, ink, isFaint, isShown, view } from "./view.js";

const INKS = { warning: "credits", critical: "danger" };
const TINT = "1a"; // opacities
const LINE = "90";
const HEALTHY = "0d";

/** The healthy range in green, what lies beyond a limit in the colour of its alarm. */
export function drawHealth(u, metric) {
  if (!metric.limits.length) return;
  const { ctx } = u;
  const { left, top, width, height } = u.bbox;
  const bottom = top + height;
  const at = (value) => Math.min(bottom, Math.max(top, u.valToPos(value, "y", true)));
  const fill = (from, to, style) => {
    ctx.fillStyle = style;
    ctx.fillRect(left, Math.min(from, to), width, Math.abs(to - from));
  };
  ctx.save();
  const { below, above } = metric.limits[0];
  if (below !== null) fill(top, at(below), ink("exit") + HEALTHY);
  else fill(bottom, at(above), ink("exit") + HEALTHY);
  for (const limit of metric.limits) {
    const value = limit.below ?? limit.above;
    const y = at(value);
    fill(y, limit.below !== null ? bottom : top, ink(INKS[limit.severity]) + TINT);
    if (y === top || y === bottom) continue; // beyond what is shown
    ctx.strokeStyle = ink(INKS[limit.severity]) + LINE;
    ctx.lineWidth = devicePixelRatio;
    ctx.setLineDash([5, 4]);
    ctx.beginPath();
    ctx.moveTo(left, y);
    ctx.lineTo(left + width, y);
    ctx.stroke();
  }
  ctx.restore();
}

/** Alarms as lines with a flag on top, checkpoints as marks on the axis, broken values as crosses. */
export function drawMarks(u, card) {
  const { ctx } = u;
  const { left, top, width, height } = u.bbox;
  const ratio = devicePixelRatio;
  const bottom = top + height;
  const placed = (x, draw) => {
    const at = u.valToPos(x, "x", true);
    if (at >= left - 1 && at <= left + width + 1) draw(at);
  };
  const { alarms, checkpoints } = view.overview;
  ctx.save();
  for (const alarm of alarms.filter(
    (each) => each.metric === card.metric.name && isShown(each.group) && !isFaint(each.group),
  )) {
    placed(alarm.at[view.axis], (x) => {
      ctx.strokeStyle = ctx.fillStyle = ink(INKS[alarm.severity]);
      ctx.lineWidth = ratio;
      ctx.setLineDash([2 * ratio, 3 * ratio]);
      line(ctx, x, top, x, bottom);
      shape(ctx, [
        [x, top],
        [x + 8 * ratio, top + 4 * ratio],
        [x, top + 8 * ratio],
      ]);
    });
  }
  ctx.setLineDash([]);
  for (const saved of checkpoints.filter((each) => isShown(each.group) && !isFaint(each.group))) {
    placed(saved.at[view.axis], (x) => {
      const isBest = saved.label === "best";
      const size = (isBest ? 5 : 3.5) * ratio;
      ctx.fillStyle = colourOf(saved.group) + (isBest ? "" : "aa");
      shape(ctx, [
        [x, bottom - 2 * size],
        [x + size, bottom],
        [x - size, bottom],
      ]);
      ctx.strokeStyle = ink("text");
      ctx.lineWidth = ratio;
      if (isBest) ctx.stroke();
    });
  }
  ctx.strokeStyle = ink("danger");
  ctx.lineWidth = 1.5 * ratio;
  for (const x of card.answer.flatMap((group, i) => (group && isShown(i) ? group.broken : []))) {
    placed(x, (at) => {
      const r = 3 * ratio;
      const y = top + 2 * r;
      line(ctx, at - r, y - r, at + r, y + r);
      line(ctx, at - r, y + r, at + r, y - r);
    });
  }
  ctx.restore();
}

function line(ctx, x0, y0, x1, y1) {
  ctx.beginPath();
  ctx.moveTo(x0, y0);
  ctx.lineTo(x1, y1);
  ctx.stroke();
}

function shape(ctx, points) {
  ctx.beginPath();
  for (const [x, y] of points) ctx.lineTo(x, y);
  ctx.closePath();
  ctx.fill();
}
