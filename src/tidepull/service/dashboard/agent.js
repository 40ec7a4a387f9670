// One agent: how it is, what it chooses, what it believes, what it gains, how rewards come, how fast it is.

import { agentPath, get } from "./api.js";
import { ArmTable } from "./arms.js";
import { Chart } from "./chart.js";
import { Palette } from "./colours.js";
import { el, fill, panel, say } from "./dom.js";
import { firstDecision } from "./first.js";
import { badge, health } from "./health.js";
import { HeatMap } from "./heat.js";
import { liftSeries, rewardSeries, shareSeries, topArms, totals, waitingSeries } from "./series.js";
import { binned, RANGES, recent } from "./range.js";
import { ago, count, knowsZone, milliseconds, moment, number, percent, signed, span, weekHour } from "./words.js";

const SLOW = 60_000;
const LIFT_POINTS = 40;
const SHORTEST = 10;

export class AgentView {
  #range = "7 days";
  #custom = null;
  #seen = null;
  #slow = 0;
  #dense = null;
  #known = {};
  #field = null;
  #palette = new Palette();
  #stopped = false;

  constructor(name, again) {
    this.name = name;
    this.again = again;
    const zoom = { zoomed: (since, until) => this.#zoom(since, until), reset: () => this.#choose("All") };
    this.charts = {
      reward: new Chart({ title: "Reward per decision", kind: "lines", format: number, ...zoom,
        note: "All decisions with their 95% band, and each arm, where a point has at least eight rewards." }),
      share: new Chart({ title: "Traffic share by arm", kind: "stack", format: percent, ...zoom }),
      coming: new Chart({ title: "Decisions and their rewards", kind: "steps", format: count, ...zoom,
        note: "The gap between the two has no reward yet, or never will." }),
      lift: new Chart({ title: "Improvement over the control", kind: "lines", format: signed, synced: false,
        note: "Reward of the agent's choices beside those of the control group, at the same times, since the start." }),
    };
    this.title = el("h1", { tabindex: "-1" }, name);
    this.badge = el("span");
    this.status = el("p", { class: "status" });
    this.alarms = el("div", { role: "alert", class: "alarms" });
    this.tiles = { best: tile("Best right now"), lift: tile("Improvement over the control"), reward: tile("Reward per decision"), waiting: tile("Pending rewards") };
    this.chances = el("ul", { class: "chances" });
    this.next = el("p");
    this.beliefs = el("div");
    this.heat = new HeatMap(el("h3", {}, "Pattern over time"), this.beliefs);
    this.changes = el("ol", { class: "changes" });
    this.arms = new ArmTable((field) => { this.#field = field; this.#slow = 0; this.again(); });
    this.speed = el("div");
    this.rewards = el("dl", { class: "facts" });
    this.rangeButtons = RANGES.map(([label]) => el("button", { type: "button", "aria-pressed": "false", click: () => this.#choose(label) }, label));
    this.shownRange = el("span", { class: "dim", "aria-live": "polite" });
    this.first = el("div");
    this.rest = el("div", { class: "rest", hidden: true }, el("div", { class: "tiles" }, Object.values(this.tiles).map((one) => one.node)),
      this.#toolbar(),
      el("div", { class: "grid" },
        this.charts.reward.node, this.charts.share.node, this.heat.node,
        panel("Chance to be best now", "Posterior probability that each arm is the best one.", this.chances, this.next,
          el("h3", {}, "What changed"), this.changes),
        this.charts.lift.node, this.charts.coming.node, this.arms.node,
        panel("Reward delay", null, this.rewards),
        panel("Speed and training", null, this.speed)));
    this.node = el("div", {}, el("div", { class: "title" }, this.title, this.badge), this.status, this.alarms, this.first, this.rest);
  }

  #toolbar() {
    const button = (text, label, act) => el("button", { type: "button", "aria-label": label, title: label, click: act }, text);
    return el("div", { class: "toolbar", role: "toolbar", "aria-label": "Time range" },
      el("span", { class: "buttons" }, this.rangeButtons),
      el("span", { class: "buttons" },
        button("‹", "Earlier", () => this.#move(-0.5, 1)), button("›", "Later", () => this.#move(0.5, 1)),
        button("+", "Zoom in", () => this.#move(0, 0.5)), button("−", "Zoom out", () => this.#move(0, 2))),
      this.shownRange);
  }

  destroy() {
    this.#stopped = true;
    for (const chart of Object.values(this.charts)) chart.destroy();
  }

  recolour() {
    for (const chart of Object.values(this.charts)) chart.recolour();
  }

  /** Ask for what is new, and show it. */
  async refresh() {
    const state = await get(agentPath(this.name));
    if (this.#stopped) return;
    this.zone = knowsZone(state.timezone) ? state.timezone : "UTC";
    if (!state.decisions) {
      this.#head(state, []);
      if (!this.first.hasChildNodes()) fill(this.first, firstDecision(state));
      return;
    }
    fill(this.first);
    this.rest.hidden = false;
    const due = Date.now() - this.#slow > SLOW;
    const known = this.#known;
    const news = this.#seen !== state.records || due;
    const asked = [get("/v1/service"), this.#history(state)];
    if (news) asked.push(get(agentPath(this.name, "/explain")), get(agentPath(this.name, "/waiting")));
    if (due) asked.push(get(agentPath(this.name, "/heatmap")), get(agentPath(this.name, "/lift"), { points: LIFT_POINTS }),
      get(agentPath(this.name, "/breakdown"), this.#field ? { field: this.#field } : {}));
    const [service, history, report, waiting, heatmap, lift, breakdown] = await Promise.all(asked);
    if (this.#stopped) return;
    if (due) this.#slow = Date.now();
    this.#seen = state.records;
    this.#known = { service, history, report: report ?? known.report, waiting: waiting ?? known.waiting, heatmap: heatmap ?? known.heatmap, lift: lift ?? known.lift, breakdown: breakdown ?? known.breakdown };
    this.#draw(state);
  }

  async #history(state) {
    const path = agentPath(this.name, "/history");
    this.firstAt ??= (await get(path, { bins: 1 })).since;
    const seconds = RANGES.find(([label]) => label === this.#range)?.[1];
    const [since, until] = this.#custom ?? recent(seconds, this.firstAt, state.latest);
    const width = this.charts.reward.host.clientWidth || 600;
    const ask = ({ bins, ...cut }) => get(path, { since: cut.since, until: cut.until, bins });
    let cut = binned(since, until, this.zone, width, this.#dense ?? Infinity);
    let found = await ask(cut);
    this.#dense = totals(found).decisions;
    const coarser = binned(since, until, this.zone, width, this.#dense);
    if (coarser.step > cut.step) [cut, found] = [coarser, await ask(coarser)];
    return { ...found, ...cut };
  }

  #choose(label) {
    this.#range = label;
    this.#custom = null;
    this.#dense = null;
    this.again();
  }

  #zoom(since, until) {
    const latest = Math.max(Date.now() / 1000, this.firstAt + SHORTEST);
    const span = Math.max(SHORTEST, until - since);
    const from = Math.max(this.firstAt - span / 2, Math.min(since, latest - SHORTEST));
    this.#custom = [from, Math.max(from + SHORTEST, Math.min(until, latest + span / 2))];
    this.#range = this.#dense = null;
    this.again();
  }

  #move(by, times) {
    const { history } = this.#known;
    if (!history) return;
    const half = (history.until - history.since) / 2, middle = history.since + half + by * 2 * half;
    this.#zoom(middle - half * times, middle + half * times);
  }

  #head(state, alarms) {
    const found = health(state, alarms);
    fill(this.badge, badge(found));
    say(this.status, found.level === "bad" ? "" : found.sentence);
    const said = JSON.stringify(alarms);
    if (this.alarms.dataset.said !== said) {
      this.alarms.dataset.said = said;
      fill(this.alarms, alarms.map((text) => el("p", {}, text)));
    }
  }

  #draw(state) {
    const { history, report, waiting, heatmap, lift, service, breakdown } = this.#known;
    this.arms.draw(breakdown);
    const alarms = [...new Set([...waiting.alarms, ...report.alarms])];
    this.#head(state, alarms);
    say(this.status, report.status);
    const arms = topArms(history);
    this.#palette.assign(arms);
    this.rangeButtons.forEach((button) => button.setAttribute("aria-pressed", String(button.textContent === this.#range)));
    say(this.shownRange, `${moment.full(history.since, this.zone)} to ${moment.full(history.until, this.zone)}, ${state.timezone}, a point for each ${span(history.step).replace(/^1 /, "")}`);
    const marks = history.changes.map((change, n) => ({ ...change, number: n + 1 }));
    const common = { x: history.starts, since: history.since, until: history.until, step: history.step, zone: this.zone, marks };
    this.charts.reward.draw({ ...common, series: rewardSeries(history, arms, this.#palette) });
    this.charts.share.draw({ ...common, series: shareSeries(history, arms, this.#palette) });
    this.charts.coming.draw({ ...common, series: waitingSeries(history) });
    this.#drawLift(lift, marks);
    this.heat.draw(heatmap, this.#palette, weekHour(Date.now() / 1000, this.zone));
    this.#drawTiles(report, history, waiting);
    this.#drawChances(report);
    this.#drawBeliefs(report, marks);
    this.#drawRewards(waiting, state);
    this.#drawSpeed(service, state);
  }

  #drawTiles(report, history, waiting) {
    const [arm, chance] = Object.entries(report.chances).sort((a, b) => b[1] - a[1])[0] ?? ["–", null];
    this.tiles.best.say(arm, `${percent(chance)} chance to be best`);
    const { lift } = report, sure = `${lift.significant ? "" : "not significant; "}against ${lift.against}; ${Math.round(100 * lift.level)}% sure at every look: between`;
    if (lift.against == null) this.tiles.lift.say("Not measured", "there is no control group");
    else if (!lift.known) this.tiles.lift.say("Not known yet", `against ${lift.against}: ${count(lift.n_policy)} rewards of its choices, ${count(lift.n_control)} of the control`);
    else if (lift.relative != null) this.tiles.lift.say(signed(lift.relative), `${sure} ${signed(lift.relative_low)} and ${signed(lift.relative_high)}`);
    else this.tiles.lift.say(number(lift.gain), `${sure} ${number(lift.low)} and ${number(lift.high)}`);
    const { mean, decisions } = totals(history);
    this.tiles.reward.say(number(mean), `on average of ${count(decisions)} decisions shown`);
    this.tiles.waiting.say(count(waiting.pending), waiting.delay_median == null ? "none has come yet" : `half take up to ${span(waiting.delay_median)}`);
  }

  #drawChances(report) {
    const ranked = Object.entries(report.chances).sort((a, b) => b[1] - a[1]);
    fill(this.chances, ranked.slice(0, 8).map(([arm, chance]) => {
      const bar = el("span", { class: "bar" }, el("i"));
      bar.firstChild.style.width = percent(chance, 1);
      bar.firstChild.style.backgroundColor = this.#palette.of(arm);
      return el("li", {}, el("span", { class: "label" }, arm), bar, el("b", {}, percent(chance)));
    }));
    say(this.next, report.next ?? "");
  }

  #drawBeliefs(report, marks) {
    const said = [...report.beliefs.map((text) => `Most likely: reward ${text}.`), ...report.when];
    fill(this.beliefs, said.length ? el("ul", { class: "said" }, said.map((text) => el("li", {}, text))) : el("p", { class: "dim" }, "No pattern found yet."));
    fill(this.changes, marks.length
      ? marks.map((mark) => el("li", { value: mark.number }, el("time", {}, moment.full(mark.at, this.zone)), ` ${mark.words}`))
      : el("li", { class: "none dim" }, "Nothing in the time shown."));
  }

  #drawLift(lift, marks) {
    const node = this.charts.lift.node;
    node.classList.toggle("empty", !lift.known);
    const series = liftSeries(lift);
    if (!series) return;
    this.charts.lift.draw({ ...series, zone: this.zone, marks });
  }

  #drawRewards(waiting, state) {
    const within = state.reward_within == null ? "There is no limit to how late a reward may come." : `A reward counts if it comes within ${span(state.reward_within)}.`;
    facts(this.rewards, [
      ["Decisions", count(waiting.decisions)],
      ["With a reward", `${count(waiting.rewarded)} (${percent(waiting.rewarded / Math.max(1, waiting.decisions))})`],
      ["Pending", count(waiting.pending)],
      ["Expired without a reward", count(waiting.expired)],
      ["Median delay", span(waiting.delay_median)],
      ["95th percentile of the delay", span(waiting.delay_late)],
      ["Last reward", ago(waiting.last_reward)],
      ["Limit", within],
    ]);
  }

  #drawSpeed(service, state) {
    const names = { choose: "Decision", choose_batch: "Batch of decisions", reward: "Reward", rewards: "Batch of rewards" };
    const rows = Object.entries(names).filter(([id]) => service.operations[id]?.count)
      .map(([id, text]) => [text, service.operations[id]]);
    const table = el("table", {}, el("thead", {}, el("tr", {}, ["Answer to", "Times", "Median", "99% within"].map((text, n) => el("th", { scope: "col", class: n ? "number" : null }, text)))),
      el("tbody", {}, rows.map(([text, speed]) => el("tr", {}, el("th", { scope: "row" }, text),
        [count(speed.count), milliseconds(speed.p50), milliseconds(speed.p99)].map((cell) => el("td", { class: "number" }, cell))))));
    const list = el("dl", { class: "facts" });
    facts(list, [
      ["Policy", state.policy],
      ["Training", state.frozen ? "held (frozen)" : state.upkeep_pending ? "some is waiting for a quiet moment" : "up to date"],
      ["Done in the background", `${count(service.upkeep_slices)} pieces of work${service.slices.count ? `, 99% under ${milliseconds(service.slices.p99)}` : ""}`],
      ["Records since the last snapshot", count(state.records - state.saved)],
      ...(service.version ? [["Service", `version ${service.version}, up for ${span(service.seconds)}`]] : []),
    ]);
    fill(this.speed, rows.length ? table : el("p", { class: "dim" }, "No decision since the service was started."), list);
  }
}

function tile(title) {
  const value = el("b"), note = el("span", { class: "dim" });
  return {
    node: el("div", { class: "tile" }, el("span", { class: "name" }, title), value, note),
    say: (text, more) => { say(value, text); say(note, more); },
  };
}

function facts(list, pairs) {
  fill(list, pairs.map(([name, value]) => el("div", {}, el("dt", {}, name), el("dd", {}, value))));
}
