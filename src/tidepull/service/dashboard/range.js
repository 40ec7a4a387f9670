// Which stretch of time is shown, cut into bins whose ends stay where they are while time goes on.

import { offset } from "./words.js";

export const RANGES = [["1 hour", 3600], ["24 hours", 86_400], ["7 days", 604_800], ["30 days", 2_592_000], ["All", null]];
const STEPS = [1, 5, 10, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10_800, 21_600, 43_200, 86_400, 172_800, 604_800,
  1_209_600, 2_592_000, 7_776_000, 31_536_000];
const LEAST_BINS = 10, MOST_BINS = 120, IN_A_BIN = 25;

/** The shortest step with at most so many bins. */
export function step(seconds, bins) {
  return STEPS.find((size) => seconds / size <= bins) ?? Math.ceil(seconds / bins);
}

/** From one moment to another, in bins: as many as fit a width and have some decisions each. */
export function binned(since, until, zone, width, decisions) {
  const wanted = Math.min(MOST_BINS, width / 7, decisions / IN_A_BIN);
  const size = step(until - since, Math.max(LEAST_BINS, wanted));
  const shift = size >= 3600 ? offset(until, zone) : 0;
  const first = Math.floor((since + shift) / size) * size - shift;
  const bins = Math.max(1, Math.ceil((until - first) / size));
  return { since: first, until: first + bins * size, bins, step: size };
}

/** A range by name as moments: up to now, or up to the last decision if that is longer ago. */
export function recent(seconds, first, latest, now = Date.now() / 1000) {
  if (seconds === null) return [first, Math.max(latest, first + 60)];
  const end = now - latest < seconds ? Math.max(now, latest) : latest;
  return [end - seconds, end];
}
