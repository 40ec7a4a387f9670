// From answers of the service to what charts draw.

import { PLACES } from "./colours.js";
import { count, number, percent, signed } from "./words.js";

const FEWEST = 8;
const sum = (values) => values.reduce((total, value) => total + value, 0);

/** Decisions, those with a reward, and the mean reward of a whole answer. */
export function totals(history) {
  return whole(Object.values(history.arms));
}

function whole(lines) {
  const decisions = sum(lines.map((line) => sum(line.decisions)));
  const rewarded = sum(lines.map((line) => sum(line.rewarded)));
  const worth = sum(lines.map((line) => sum(line.mean.map((mean, n) => (mean ?? 0) * line.rewarded[n]))));
  return { decisions, rewarded, mean: rewarded ? worth / rewarded : null };
}

/** The arms with most decisions, in the order of the service; as many as there are colours. */
export function topArms(history) {
  const byCount = Object.entries(history.arms).map(([label, line]) => [label, sum(line.decisions)]).filter(([, n]) => n > 0);
  if (byCount.length <= PLACES) return byCount.map(([label]) => label);
  const top = new Set([...byCount].sort((a, b) => b[1] - a[1]).slice(0, PLACES - 1).map(([label]) => label));
  return byCount.map(([label]) => label).filter((label) => top.has(label));
}

/** One line out of many: all decisions together, with the 95% interval of their mean in each bin. */
function together(lines, fewest = 1) {
  const bins = lines[0]?.decisions.length ?? 0;
  const line = { decisions: [], rewarded: [], mean: [], low: [], high: [] };
  for (let n = 0; n < bins; n += 1) {
    const paid = lines.filter((one) => one.rewarded[n] > 0);
    const rewarded = sum(paid.map((one) => one.rewarded[n]));
    const mean = rewarded >= fewest ? sum(paid.map((one) => one.mean[n] * one.rewarded[n])) / rewarded : null;
    const squares = sum(paid.map((one) => spread(one, n) + one.rewarded[n] * (one.mean[n] - mean) ** 2));
    const [low, high] = mean != null && rewarded > 1 ? interval(mean, squares, rewarded) : [null, null];
    line.decisions.push(sum(lines.map((one) => one.decisions[n])));
    line.rewarded.push(rewarded);
    line.mean.push(mean);
    line.low.push(low);
    line.high.push(high);
  }
  return line;
}

/** The 95% interval of a mean: Wilson's where all rewards are 0 or 1, which stays between them. */
function interval(mean, squares, n) {
  const z = 1.96, binary = mean * (1 - mean);
  if (binary >= 0 && Math.abs(squares / n - binary) < 1e-6) {
    const centre = (mean + (z * z) / (2 * n)) / (1 + (z * z) / n);
    const half = (z * Math.sqrt(binary / n + (z * z) / (4 * n * n))) / (1 + (z * z) / n);
    return [Math.max(0, centre - half), Math.min(1, centre + half)];
  }
  const half = z * Math.sqrt(squares / (n - 1) / n);
  return [mean - half, mean + half];
}

/** The sum of squares around a bin's mean, from the width of its interval. */
function spread(line, n) {
  if (line.high[n] == null) return 0;
  const half = (line.high[n] - line.mean[n]) / 1.96;
  return half * half * line.rewarded[n] * (line.rewarded[n] - 1);
}

function others(history, arms) {
  const rest = Object.keys(history.arms).filter((label) => !arms.includes(label) && sum(history.arms[label].decisions) > 0);
  return rest.length ? [`${count(rest.length)} other arms`, rest.map((label) => history.arms[label])] : null;
}

/** The mean reward of all decisions, and of each arm where that is the mean of a few rewards at least. */
export function rewardSeries(history, arms, palette) {
  const all = together(Object.values(history.arms), FEWEST);
  const lines = arms.map((label) => [label, history.arms[label]]);
  const rest = others(history, arms);
  if (rest) lines.push([rest[0], together(rest[1])]);
  return [
    { label: "all decisions", colour: "var(--fg)", bold: true, values: all.mean, low: all.low, high: all.high, summary: number(totals(history).mean) },
    ...lines.map(([label, line]) => ({ label, colour: palette.of(label), values: line.mean.map((mean, n) => (line.rewarded[n] < FEWEST ? null : mean)), summary: number(whole([line]).mean) })),
  ];
}

/** Each arm's share of all decisions. */
export function shareSeries(history, arms, palette) {
  const lines = arms.map((label) => [label, history.arms[label].decisions]);
  const rest = others(history, arms);
  if (rest) lines.push([rest[0], together(rest[1]).decisions]);
  const all = lines[0]?.[1].map((_, n) => sum(lines.map(([, decisions]) => decisions[n]))) ?? [];
  const total = sum(all);
  return lines.map(([label, decisions]) => ({
    label, colour: palette.of(label), values: decisions.map((n, bin) => (all[bin] ? n / all[bin] : null)), summary: percent(sum(decisions) / total),
  }));
}

/** Decisions, and those of them that have their reward. */
export function waitingSeries(history) {
  const all = together(Object.values(history.arms));
  return [
    { label: "decisions", colour: "var(--rest)", values: all.decisions, summary: count(sum(all.decisions)) },
    { label: "with a reward", colour: "var(--arm-0)", values: all.rewarded, summary: count(sum(all.rewarded)) },
  ];
}

/** The gain as it grew, in percent of the control where that can be said; null: nothing can be said yet. */
export function liftSeries(lift) {
  const known = lift.history.filter((point) => point.low != null && point.relative != null);
  if (known.length < 2) return null;
  const settled = known.slice(Math.floor(known.length / 4));
  const low = Math.min(0, ...settled.map((point) => point.relative_low)), high = Math.max(0, ...settled.map((point) => point.relative_high));
  const room = 0.06 * (high - low || 1);
  return {
    x: known.map((point) => point.until), step: 0, since: known[0].until, until: known.at(-1).until, range: [low - room, high + room],
    series: [{
      label: "improvement", colour: "var(--arm-2)", bold: true, summary: signed(lift.relative),
      values: known.map((point) => point.relative), low: known.map((point) => point.relative_low), high: known.map((point) => point.relative_high),
    }],
  };
}
