// Every arm with its rate, interval and number, in all or by a field of the context.

import { el, fill, panel } from "./dom.js";
import { count, number } from "./words.js";

const rate = (value) => (value != null && Math.abs(value) < 10 ? value.toFixed(3) : number(value));

/** A table; `choose(field)` is called when another field is wanted (null: none). */
export class ArmTable {
  #fields = "";
  #shown = "";

  constructor(choose) {
    this.select = el("select", { "aria-label": "Break down by", change: () => choose(this.select.value || null) });
    this.table = el("table");
    this.node = panel("Reward of each arm", "Of all decisions since the start, in all groups. Intervals hold for one arm at one look.",
      el("p", { class: "keys" }, el("label", {}, "By ", this.select)), el("div", { class: "scroll" }, this.table));
  }

  /** `arms` are all there are; `button(arm)` makes what an admin may press. */
  draw(found, arms, button) {
    const shown = JSON.stringify([found, arms, Boolean(button)]);
    if (shown === this.#shown) return;
    this.#shown = shown;
    const fields = JSON.stringify(found.fields);
    if (fields !== this.#fields) {
      this.#fields = fields;
      this.select.parentNode.parentNode.hidden = !found.fields.length;
      const options = [["", "arm alone"], ...found.fields.map((field) => [field, field])];
      fill(this.select, options.map(([value, text]) => el("option", { value }, text)));
    }
    this.select.value = found.field ?? "";
    const acts = button && !found.field, known = new Map(arms.map((arm) => [arm.label, arm]));
    const heads = [...(found.field ? [[found.field]] : []), ["Arm"], ["Decisions", "number"], ["With a reward", "number"], ["Reward", "number"], ["95% interval", "number"], ...(acts ? [[""]] : [])];
    const unplayed = found.field ? [] : arms.filter(({ label }) => !found.rows.some((row) => row.arm === label))
      .map(({ label }) => ({ arm: label, decisions: 0, rewarded: 0 }));
    fill(this.table,
      el("thead", {}, el("tr", {}, heads.map(([text, kind]) => el("th", { scope: "col", class: kind }, text)))),
      el("tbody", {}, [...found.rows, ...unplayed].map((row) => el("tr", { class: known.get(row.arm)?.retired ? "dim" : null },
        found.field ? el("td", {}, row.value) : null,
        el("th", { scope: "row" }, known.get(row.arm)?.retired ? `${row.arm} (retired)` : row.arm),
        [count(row.decisions), count(row.rewarded), rate(row.mean), row.low == null ? "–" : `${rate(row.low)} to ${rate(row.high)}`]
          .map((text) => el("td", { class: "number" }, text)),
        acts ? el("td", { class: "number" }, known.has(row.arm) ? button(known.get(row.arm)) : null) : null))));
  }
}
