// Single decisions and why each arm was taken; they are asked for when wanted, as every look is audited.

import { agentPath, get, getPast } from "./api.js";
import { el, fill, panel, say } from "./dom.js";
import { moment, number, percent } from "./words.js";

const LIMIT = 20;
const texts = (context) => Object.entries(context ?? {}).map(([name, value]) => `${name}: ${value}`).join(", ");
const ranked = (chances) => Object.entries(chances).sort((a, b) => b[1] - a[1]).map(([arm, chance]) => `${arm} ${percent(chance)}`).join(", ");

export class Reasons {
  constructor(name) {
    this.name = name;
    this.body = el("tbody");
    this.said = el("p", { role: "status", class: "dim" });
    this.table = el("table", {}, el("thead", {}, el("tr", {}, ["When", "Arm", "Visitor", "Group"].map((text) => el("th", { scope: "col" }, text)),
      el("th", { scope: "col", class: "number" }, "Reward"), el("th"))), this.body);
    this.table.hidden = true;
    this.node = panel("Decisions, and why", "The last decisions until the moment above.",
      el("p", {}, el("button", { type: "button", click: () => this.#list() }, "Show decisions")),
      this.said, el("div", { class: "scroll" }, this.table));
    this.node.hidden = true;
  }

  /** Show it to whoever may ask; `at`: decisions until that moment (null: now). */
  draw(may, at, zone) {
    this.node.hidden = !may;
    if (at !== this.at) this.table.hidden = true;
    Object.assign(this, { at, zone });
  }

  async #list() {
    await this.#try(async () => {
      const { decisions } = await get(agentPath(this.name, "/decisions"), { until: this.at, limit: LIMIT });
      this.table.hidden = !decisions.length;
      fill(this.body, decisions.flatMap((one) => this.#row(one)));
      return decisions.length ? "" : "There are none until then.";
    });
  }

  #row(one) {
    const why = el("td", { colspan: "6", class: "why" }), more = el("tr", { hidden: true }, why);
    const ask = () => this.#try(async () => {
      more.hidden = false;
      fill(why, el("p", {}, one.why));
      const found = await this.#why(one.id);
      fill(why, el("p", {}, one.why), el("p", {}, `How often each arm came out best: ${ranked(found.decision.chances)}.`),
        found.what_if.map((other) => el("p", {}, `With ${other.field} ${other.value} it would have been: ${ranked(other.chances)}.`)),
        el("p", { class: "dim" }, found.same ? "Replayed from the ledger, the same decision comes out." : "Replayed here, another decision comes out: the machine or the release is another one."));
    });
    return [el("tr", {}, el("td", {}, moment.short(Date.parse(one.at) / 1000, this.zone)), el("th", { scope: "row" }, one.arm), el("td", {}, texts(one.context)),
      el("td", {}, one.group), el("td", { class: "number" }, one.reward == null ? "none yet" : number(one.reward)),
      el("td", { class: "number" }, el("button", { type: "button", click: ask }, "Why?"))), more];
  }

  async #why(id) {
    return getPast(agentPath(this.name, "/why"), { id }, (text) => say(this.said, text));
  }

  async #try(work) {
    say(this.said, "Asking …");
    try {
      say(this.said, (await work()) ?? "");
    } catch (error) {
      if (error.status === undefined) throw error;
      say(this.said, error.message);
    }
  }
}
