// How an agent is, in one word and one sentence.

import { el } from "./dom.js";
import { ago, span } from "./words.js";

const QUIET = 3600;

/** From its state and warnings: a level ("good", "bad", "calm") for the colour, a word and a sentence. */
export function health(state, alarms, now = Date.now() / 1000) {
  if (alarms.length) return { level: "bad", word: "Check", sentence: alarms[0] };
  if (state.frozen) return { level: "calm", word: "Frozen", sentence: "Frozen: it decides and does not learn." };
  if (!state.decisions) return { level: "calm", word: "New", sentence: "Waiting for its first decision." };
  if (now - state.latest > QUIET) {
    return { level: "calm", word: "Quiet", sentence: `No decision for ${span(now - state.latest)}.` };
  }
  if (state.warmup) return { level: "calm", word: "Starting", sentence: "It is learning what contexts look like." };
  return { level: "good", word: "Running", sentence: `Last decision ${ago(state.latest, now)}.` };
}

/** The word as a badge. */
export const badge = (found) => el("span", { class: `badge ${found.level}` }, found.word);
