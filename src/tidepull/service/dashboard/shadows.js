// Candidates beside the agent: where they disagree, and what they would be worth.

import { promoteButton } from "./actions.js";
import { el, fill, panel } from "./dom.js";
import { count, number, percent } from "./words.js";

const HEADS = ["Candidate", "Would choose another arm", "Reward, estimated", "Difference", "Decisions", "Share of traffic"];

export class ShadowTable {
  #shown = "";

  constructor() {
    this.body = el("tbody");
    this.said = el("ul", { class: "said" });
    this.node = panel("Candidates in the shadow", "They see every decision and reward, and decide nothing. Differences are to the agent's own choices, 95% sure at every look.",
      el("div", { class: "scroll" }, el("table", {},
        el("thead", {}, el("tr", {}, HEADS.map((text, n) => el("th", { scope: "col", class: n ? "number" : null }, text)), el("th"))), this.body)), this.said);
    this.node.hidden = true;
  }

  /** `promotion`: the candidate that has a share of the traffic; `button(policy)` makes what an admin may press. */
  draw(shadows, promotion, button) {
    const shown = JSON.stringify([shadows, promotion, Boolean(button)]);
    if (shown === this.#shown) return;
    this.#shown = shown;
    this.node.hidden = !shadows.length;
    fill(this.body, shadows.map((one) => el("tr", {}, el("th", { scope: "row" }, one.policy),
      [percent(one.disagreement), one.known ? number(one.value) : "not known",
        one.known ? `${number(one.gain)} (${number(one.low)} to ${number(one.high)})` : "–", count(one.decisions),
        percent(promotion?.policy === one.policy ? promotion.share : 0)]
        .map((text) => el("td", { class: "number" }, text)),
      el("td", { class: "number" }, button?.(one.policy)))));
    fill(this.said, shadows.map((one) => el("li", {}, one.words)));
  }
}

export const promoting = (name, done) => (policy) => promoteButton(name, policy, done);
