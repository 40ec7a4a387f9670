// Which time is shown, in which time zone, and at which moment the agent is looked at.

import { el, fill, say } from "./dom.js";
import { RANGES } from "./range.js";
import { dateOf, knowsZone, midnight, moment, span } from "./words.js";

const DAY = 86_400, STEPS = 500;
const localZone = Intl.DateTimeFormat().resolvedOptions().timeZone;

/** `on` has what to call: range(label), move(by, times), zoom(since, until), zone(), past(at or null). */
export class Toolbar {
  constructor(on) {
    this.on = on;
    const button = (text, label, act) => el("button", { type: "button", "aria-label": label, title: label, click: act }, text);
    this.ranges = RANGES.map(([label]) => el("button", { type: "button", "aria-pressed": "false", click: () => on.range(label) }, label));
    this.from = el("input", { type: "date", "aria-label": "First day", change: () => this.#days() });
    this.to = el("input", { type: "date", "aria-label": "Last day", change: () => this.#days() });
    this.select = el("select", { "aria-label": "Time zone", change: () => { localStorage.setItem("tidepull-zone", this.select.value); on.zone(); } });
    this.shown = el("span", { class: "dim", "aria-live": "polite" });
    this.slider = el("input", { type: "range", id: "moment", min: "0", max: String(STEPS), value: String(STEPS), input: () => this.#tellMoment(), change: () => this.#past() });
    this.moment = el("output", { for: "moment" }, "now");
    this.back = el("button", { type: "button", hidden: true, click: () => { this.slider.value = String(STEPS); this.#past(); } }, "Back to now");
    this.node = el("div", {},
      el("div", { class: "toolbar", role: "toolbar", "aria-label": "Time range" },
        el("span", { class: "buttons" }, this.ranges),
        el("span", { class: "buttons" },
          button("‹", "Earlier", () => on.move(-0.5, 1)), button("›", "Later", () => on.move(0.5, 1)),
          button("+", "Zoom in", () => on.move(0, 0.5)), button("−", "Zoom out", () => on.move(0, 2))),
        el("span", { class: "row" }, this.from, "to", this.to), this.select, this.shown),
      el("div", { class: "toolbar replay" }, el("label", { for: "moment" }, "What it knew at"), this.slider, this.moment, this.back));
  }

  /** The zone that was chosen, for an agent of a zone. */
  zone(agentZone) {
    const known = knowsZone(agentZone) ? agentZone : "UTC";
    const zones = [...new Set([known, localZone, "UTC"])];
    if (zones.join() !== [...this.select.options].map((option) => option.value).join()) {
      fill(this.select, zones.map((zone) => el("option", { value: zone }, zone === known ? `${zone} (the agent's)` : zone)));
      const wanted = localStorage.getItem("tidepull-zone");
      this.select.value = zones.includes(wanted) ? wanted : known;
    }
    return this.select.value;
  }

  draw({ since, until, step }, { range, zone, first, latest }) {
    Object.assign(this, { first, latest });
    this.ranges.forEach((button) => button.setAttribute("aria-pressed", String(button.textContent === range)));
    for (const [input, at] of [[this.from, since], [this.to, until - 1]]) if (document.activeElement !== input) input.value = dateOf(at, zone);
    say(this.shown, `${moment.full(since, zone)} to ${moment.full(until, zone)}, a point for each ${span(step).replace(/^1 /, "")}`);
    this.#tellMoment();
  }

  get #at() {
    const part = Number(this.slider.value) / STEPS;
    return part === 1 ? null : Math.round(this.first + part * (this.latest - this.first));
  }

  #tellMoment() {
    const at = this.#at;
    this.back.hidden = at === null;
    say(this.moment, at === null ? "now" : moment.short(at, this.select.value));
  }

  #past() {
    this.#tellMoment();
    this.on.past(this.#at);
  }

  #days() {
    if (!this.from.value || !this.to.value) return;
    const zone = this.select.value, since = midnight(this.from.value, zone), until = midnight(this.to.value, zone) + DAY;
    if (until > since) this.on.zoom(since, until);
  }
}
