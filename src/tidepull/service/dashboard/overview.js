// All agents and how they are.

import { agentPath, get } from "./api.js";
import { el, fill, panel } from "./dom.js";
import { firstAgent } from "./first.js";
import { badge, health } from "./health.js";
import { ago, count, signed } from "./words.js";

const AT_ONCE = 4;
const MOST = 100;
const FILTER_FROM = 10;
const HEADS = ["Agent", "Health", "Decisions", "With reward", "Improvement", "Last decision"];

export class Overview {
  #agents = [];
  #found = new Map();
  #shown = "";

  constructor() {
    this.filter = el("input", { type: "search", placeholder: "Find an agent", "aria-label": "Find an agent", input: () => this.#draw() });
    this.body = el("tbody");
    this.table = el("table", { class: "agents" },
      el("thead", {}, el("tr", {}, HEADS.map((text, n) => el("th", { scope: "col", class: n > 1 ? "number" : null }, text)))),
      this.body);
    this.empty = el("div");
    this.list = panel("Agents", null, this.filter, this.table);
    this.node = el("div", {}, el("h1", { class: "unseen" }, "All agents"), this.list, this.empty);
  }

  async refresh(agents) {
    this.#agents = agents;
    this.#draw();
    const asked = agents.filter((agent) => agent.open).slice(0, MOST);
    for (let n = 0; n < asked.length; n += AT_ONCE) {
      await Promise.all(asked.slice(n, n + AT_ONCE).map((agent) => this.#look(agent.name)));
    }
    this.#draw();
  }

  async #look(name) {
    try {
      const state = await get(agentPath(name));
      const { alarms, lift } = await get(agentPath(name, "/explain"));
      this.#found.set(name, { state, lift, health: health(state, alarms) });
    } catch (error) {
      if (error.status !== 403 && error.status !== 404) throw error;
      this.#found.set(name, { health: { level: "calm", word: "No access", sentence: error.message } });
    }
  }

  #draw() {
    const none = this.#agents.length === 0;
    this.list.hidden = none;
    if (none && !this.empty.hasChildNodes()) fill(this.empty, firstAgent());
    else if (!none) fill(this.empty);
    this.filter.hidden = this.#agents.length < FILTER_FROM;
    const wanted = this.#agents.filter((agent) => agent.name.includes(this.filter.value.trim().toLowerCase()));
    const shown = JSON.stringify(wanted.map((agent) => [agent, this.#found.get(agent.name)]));
    if (shown === this.#shown) return;
    this.#shown = shown;
    const focused = document.activeElement?.closest?.("tr")?.dataset.agent;
    fill(this.body, wanted.map((agent) => this.#row(agent)));
    if (focused) this.body.querySelector(`[data-agent="${CSS.escape(focused)}"] a`)?.focus();
  }

  #row({ name, open }) {
    const { state, lift, health: how } = this.#found.get(name) ?? {};
    const asleep = { level: "calm", word: open ? "…" : "Asleep", sentence: open ? "" : "Not loaded: no request since the service started. Open it for details." };
    const found = how ?? asleep;
    const gain = lift?.known ? `${signed(lift.relative)}${lift.significant ? "" : ", not significant"}` : "not known";
    const cells = state ? [count(state.decisions), count(state.rewards), gain, ago(state.latest)] : ["", "", "", ""];
    const row = el("tr", {}, el("th", { scope: "row" }, el("a", { href: `#/${name}` }, name)),
      el("td", {}, badge(found), found.level === "good" ? null : el("span", { class: "dim" }, ` ${found.sentence}`)), cells.map((text) => el("td", { class: "number" }, text)));
    row.dataset.agent = name;
    return row;
  }
}
