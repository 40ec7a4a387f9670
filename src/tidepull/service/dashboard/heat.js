// The best arm of every hour of the week, where it is sure; hours that too few decisions fell into are hatched.

import { el, fill, say } from "./dom.js";
import { count } from "./words.js";

const FEWEST = 5;

const SHORT = { Monday: "Mon", Tuesday: "Tue", Wednesday: "Wed", Thursday: "Thu", Friday: "Fri", Saturday: "Sat", Sunday: "Sun" };

/** A table that arrow keys walk through; one sentence says what is under the cursor. */
export class HeatMap {
  #at = [0, 0];
  #shown = "";

  constructor() {
    this.table = el("table", { class: "heat", keydown: (event) => this.#key(event) });
    this.legend = el("p", { class: "keys" });
    this.said = el("output", { class: "said" });
    this.node = el("section", { class: "panel", "aria-labelledby": "heat-title" },
      el("h2", { id: "heat-title" }, "Best arm by hour and weekday"),
      this.note = el("p", { class: "note" }),
      this.legend, this.table, this.said);
  }

  draw(map, palette, now, zone, word) {
    const shown = JSON.stringify([map, now, zone, word]);
    if (shown === this.#shown) return;
    this.#shown = shown;
    const focused = this.table.contains(document.activeElement);
    this.map = map;
    this.now = now;
    this.word = word;
    say(this.note, `Coloured where an arm is best with a probability of 99%. Hours of ${zone}.`);
    const best = new Set(map.best.flat().filter((arm) => arm !== null));
    fill(this.legend, map.arms.filter((arm) => best.has(arm)).map((arm) => {
      const swatch = el("i");
      swatch.style.backgroundColor = palette.of(arm);
      return el("span", {}, swatch, arm);
    }), el("span", {}, el("i", { class: "unsure" }), "not sure"), el("span", {}, el("i", { class: "few" }), "too few decisions"));
    const head = el("tr", {}, el("td"), Array.from({ length: 24 }, (_, hour) =>
      el("th", { scope: "col" }, el("span", { class: hour % 3 ? "unseen" : "" }, String(hour)))));
    const rows = map.weekdays.map((day, d) => el("tr", {}, el("th", { scope: "row" }, SHORT[day] ?? day),
      map.best[d].map((arm, h) => this.#cell(d, h, arm, palette))));
    fill(this.table, el("thead", {}, head), el("tbody", {}, rows));
    this.#focus(...(this.#at ?? [0, 0]), focused);
    say(this.said, this.#sentence(...now));
  }

  #cell(d, h, arm, palette) {
    const cell = el("td", {
      tabindex: "-1", class: [this.now[0] === d && this.now[1] === h ? "now" : "", arm === null && this.#few(d, h) ? "few" : ""].join(" "), "aria-label": this.#sentence(d, h),
      mouseenter: () => say(this.said, this.#sentence(d, h)),
      mouseleave: () => say(this.said, this.#sentence(...this.now)),
      focus: () => say(this.said, this.#sentence(d, h)),
      click: () => this.#focus(d, h, true),
    });
    if (arm !== null) cell.style.backgroundColor = palette.of(arm);
    return cell;
  }

  #few(d, h) {
    return this.map.decisions[d][h] < FEWEST;
  }

  #sentence(d, h) {
    const { best, decisions, weekdays } = this.map, arm = best[d][h];
    const now = this.now[0] === d && this.now[1] === h ? `${this.word}, ` : "";
    const said = arm !== null ? `${arm} is best` : this.#few(d, h) ? "too few decisions to tell" : "it is not sure which arm is best";
    return `${now}${weekdays[d]} ${h}:00 to ${h + 1}:00: ${said} (${count(decisions[d][h])} decisions in four weeks).`;
  }

  #focus(d, h, take) {
    this.table.querySelector("td[tabindex='0']")?.setAttribute("tabindex", "-1");
    const cell = this.table.tBodies[0].rows[d].cells[h + 1];
    cell.setAttribute("tabindex", "0");
    this.#at = [d, h];
    if (take) cell.focus();
  }

  #key(event) {
    const moves = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] };
    if (!(event.key in moves)) return;
    const [down, right] = moves[event.key];
    this.#focus((this.#at[0] + down + 7) % 7, (this.#at[1] + right + 24) % 24, true);
    event.preventDefault();
  }
}
