// One agent: how it is, what it chooses, what it believes, what it gains, how rewards come, how fast it is; now, or at an earlier moment.

import { agentButtons, armButton } from "./actions.js";
import { agentPath, get, getPast } from "./api.js";
import { ArmTable } from "./arms.js";
import { Chart } from "./chart.js";
import { Palette } from "./colours.js";
import { el, fill, panel, say } from "./dom.js";
import { firstDecision } from "./first.js";
import { badge, health } from "./health.js";
import { HeatMap } from "./heat.js";
import { liftSeries, rewardSeries, shareSeries, topArms, totals, waitingSeries } from "./series.js";
import { binned, RANGES, recent } from "./range.js";
import { Reasons } from "./reasons.js";
import { promoting, ShadowTable } from "./shadows.js";
import { Toolbar } from "./toolbar.js";
import { ago, count, counted, knowsZone, localMoment, milliseconds, moment, number, percent, signed, span, weekHour } from "./words.js";

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
  #at = null;
  #past = "";
  #buttons = "";

  constructor(name, again) {
    this.name = name;
    this.again = again;
    this.changed = () => { this.#slow = 0; this.#seen = null; again(); };
    const zoom = { zoomed: (since, until) => this.#zoom(since, until), reset: () => this.#choose("All") };
    this.charts = {
      reward: new Chart({ title: "Reward per decision", kind: "lines", format: number, ...zoom,
        note: "All decisions with their 95% band, and each arm, where a point has at least eight rewards." }),
      share: new Chart({ title: "Traffic share by arm", kind: "stack", format: percent, ...zoom }),
      coming: new Chart({ title: "Decisions and their rewards", kind: "steps", format: count, ...zoom,
        note: "The gap between the two has no reward yet, or never will." }),
      lift: new Chart({ title: "Improvement over the control, as it grew", kind: "lines", format: signed, synced: false,
        note: "The agent's choices against the control group, by all decisions until then. The band may be looked at every day." }),
    };
    this.title = el("h1", { tabindex: "-1" }, name);
    this.badge = el("span");
    this.status = el("p", { class: "status" });
    this.alarms = el("div", { role: "alert", class: "alarms" });
    this.tiles = { best: tile("Best arm at this hour"), lift: tile("Improvement over the control"), reward: tile("Reward per decision"), waiting: tile("Pending rewards") };
    this.chances = el("ul", { class: "chances" });
    this.next = el("p");
    this.beliefs = el("div");
    this.heat = new HeatMap();
    this.changes = el("ol", { class: "changes" });
    this.arms = new ArmTable((field) => { this.#field = field; this.#slow = 0; this.again(); });
    this.speed = el("div");
    this.rewards = el("dl", { class: "facts" });
    this.actions = el("p", { class: "row" });
    this.replayed = el("p", { class: "replayed", role: "status", hidden: true });
    this.shadows = new ShadowTable();
    this.reasons = new Reasons(name);
    this.toolbar = new Toolbar({
      range: (label) => this.#choose(label), move: (by, times) => this.#move(by, times), zoom: zoom.zoomed,
      zone: () => { this.#past = ""; this.again(); }, past: (at) => { this.#at = at; this.#dense = null; this.changed(); },
    });
    this.first = el("div");
    const delays = panel("Reward delay", null, this.rewards), speed = panel("Speed and training", null, this.speed);
    for (const node of [this.charts.lift.node, this.arms.node, this.shadows.node, delays, speed, this.tiles.waiting.node]) node.classList.add("present");
    this.rest = el("div", { class: "rest", hidden: true }, el("div", { class: "tiles" }, Object.values(this.tiles).map((one) => one.node)),
      this.toolbar.node, this.replayed,
      el("div", { class: "grid" },
        this.charts.reward.node, this.charts.share.node, this.heat.node,
        panel("What it chooses at this hour", "Each arm is played as often as it is best in draws from the posterior.", this.chances,
          el("h3", {}, "What it has learnt"), this.beliefs, this.next, el("h3", {}, "What changed"), this.changes),
        this.arms.node, this.charts.lift.node, this.shadows.node, this.reasons.node, this.charts.coming.node, delays, speed));
    for (const node of [this.shadows.node, this.reasons.node, this.charts.coming.node]) node.classList.add("wide");
    this.node = el("div", {}, el("div", { class: "title" }, this.title, this.badge, el("span", { class: "spring" }), this.actions), this.status, this.alarms, this.first, this.rest);
  }

  destroy() {
    this.#stopped = true;
    for (const chart of Object.values(this.charts)) chart.destroy();
  }

  recolour() {
    for (const chart of Object.values(this.charts)) chart.recolour();
  }

  /** Ask for what is new, and show it; `scopes` are the token's. */
  async refresh(_, scopes) {
    const state = await get(agentPath(this.name));
    if (this.#stopped) return;
    this.may = scopes.includes("admin");
    this.agentZone = knowsZone(state.timezone) ? state.timezone : "UTC";
    this.zone = this.toolbar.zone(state.timezone);
    this.#drawButtons(state);
    if (!state.decisions) {
      this.#head(state, []);
      if (!this.first.hasChildNodes()) fill(this.first, firstDecision(state));
      return;
    }
    fill(this.first);
    this.rest.hidden = false;
    this.rest.classList.toggle("past", this.#at !== null);
    await (this.#at === null ? this.#refreshNow(state) : this.#refreshPast(state));
  }

  async #refreshNow(state) {
    this.replayed.hidden = true;
    this.#past = "";
    const due = Date.now() - this.#slow > SLOW;
    const known = this.#known;
    const news = this.#seen !== state.records || due;
    const asked = [get("/v1/service"), this.#history(state)];
    if (news) asked.push(get(agentPath(this.name, "/explain")), get(agentPath(this.name, "/waiting")));
    if (due) asked.push(get(agentPath(this.name, "/heatmap")), get(agentPath(this.name, "/lift"), { points: LIFT_POINTS }),
      get(agentPath(this.name, "/breakdown"), this.#field ? { field: this.#field } : {}));
    const [service, history, report, waiting, heatmap, lift, breakdown] = await Promise.all(asked);
    if (this.#stopped || this.#at !== null) return;
    if (due) {
      this.#slow = Date.now();
      this.#drawShadows(state);
    }
    this.#seen = state.records;
    this.#known = { service, history, report: report ?? known.report, waiting: waiting ?? known.waiting, heatmap: heatmap ?? known.heatmap, lift: lift ?? known.lift, breakdown: breakdown ?? known.breakdown };
    this.#draw(state);
  }

  /** What was known at a moment: the service replays its ledger, which may take a while. */
  async #refreshPast(state) {
    const at = this.#at, wanted = JSON.stringify([at, this.#range, this.#custom, this.zone]);
    if (wanted === this.#past) return;
    const waits = (text) => { say(this.replayed, text); return this.#at === at && !this.#stopped; };
    this.replayed.hidden = false;
    say(this.replayed, "Replaying the ledger up to that moment …");
    this.rest.classList.add("stale");
    try {
      const history = await this.#history({ latest: at }, at);
      const report = await getPast(agentPath(this.name, "/explain"), { at }, waits);
      const heatmap = await getPast(agentPath(this.name, "/heatmap"), { at }, waits);
      if (this.#stopped || this.#at !== at) return;
      this.#past = wanted;
      this.#known = { ...this.#known, history, report, heatmap };
      say(this.replayed, `As it was known on ${moment.full(at, this.zone)}, rebuilt from the ledger.`);
      this.#drawKnown(state);
    } catch (error) {
      if (error.status === undefined || error.status === 0 || error.status === 401) throw error;
      this.#past = wanted;
      say(this.replayed, error.message);
    } finally {
      this.rest.classList.remove("stale");
    }
  }

  async #history(state, now) {
    const path = agentPath(this.name, "/history");
    this.firstAt ??= (await get(path, { bins: 1 })).since;
    const seconds = RANGES.find(([label]) => label === this.#range)?.[1];
    const [since, end] = this.#custom ?? recent(seconds, this.firstAt, state.latest, now);
    const until = now === undefined ? end : Math.max(since + SHORTEST, Math.min(end, now));
    const past = ({ bins, step }) => ({ bins, step, since: until - bins * step, until });
    const cutInto = (decisions) => {
      const cut = binned(since, until, this.zone, width, decisions);
      return now === undefined ? cut : past(cut);
    };
    const width = this.charts.reward.host.clientWidth || 600;
    const ask = ({ bins, ...cut }) => get(path, { since: cut.since, until: cut.until, bins });
    let cut = cutInto(this.#dense ?? Infinity);
    let found = await ask(cut);
    this.#dense = totals(found).decisions;
    const coarser = cutInto(this.#dense);
    if (coarser.step > cut.step) [cut, found] = [coarser, await ask(coarser)];
    return { ...found, ...cut };
  }

  async #drawShadows(state) {
    if (!state.shadow.length) return this.shadows.draw([], null);
    const { shadows } = await get(agentPath(this.name, "/shadows"));
    if (!this.#stopped) this.shadows.draw(shadows, state.promotion, this.may ? promoting(this.name, this.changed) : null);
  }

  #drawButtons(state) {
    const shown = JSON.stringify([this.may, state.frozen]);
    if (shown === this.#buttons) return;
    this.#buttons = shown;
    fill(this.actions, this.may ? agentButtons(this.name, state.frozen, (text) => localMoment(text, this.zone), this.changed) : []);
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
    const { report, waiting, lift, service, breakdown } = this.#known;
    this.arms.draw(breakdown, state.arms, this.may ? (arm) => armButton(this.name, arm, this.changed) : null);
    this.#head(state, [...new Set([...waiting.alarms, ...report.alarms])]);
    this.#drawKnown(state);
    this.#drawLift(lift);
    this.tiles.waiting.say(count(waiting.pending), waiting.delay_median == null ? "none has come yet" : `half arrive within ${span(waiting.delay_median).replace("under ", "")}`);
    this.#drawRewards(waiting, state);
    this.#drawSpeed(service, state);
  }

  /** What is known now, or was at a moment. */
  #drawKnown(state) {
    const { history, report, heatmap } = this.#known;
    say(this.status, report.status);
    const arms = topArms(history);
    this.#palette.assign(arms);
    this.toolbar.draw(history, { range: this.#range, zone: this.zone, first: this.firstAt, latest: state.latest });
    const marks = history.changes.map((change, n) => ({ ...change, number: n + 1 }));
    this.marks = marks;
    const common = { x: history.starts, since: history.since, until: history.until, step: history.step, zone: this.zone, marks };
    this.charts.reward.draw({ ...common, series: rewardSeries(history, arms, this.#palette) });
    this.charts.share.draw({ ...common, series: shareSeries(history, arms, this.#palette) });
    this.charts.coming.draw({ ...common, series: waitingSeries(history) });
    const hour = weekHour(this.#at ?? Date.now() / 1000, this.agentZone);
    this.heat.draw(heatmap, this.#palette, hour, this.agentZone, this.#at === null ? "Now" : "Then");
    this.#drawTiles(report, history, heatmap.best[hour[0]][hour[1]]);
    this.#drawChances(report);
    this.#drawBeliefs(report, marks);
    this.reasons.draw(this.may, this.#at, this.zone);
  }

  #drawTiles(report, history, best) {
    const [arm, chance] = Object.entries(report.chances).sort((a, b) => b[1] - a[1])[0] ?? ["–", null];
    const plays = chance == null ? "nothing is known yet" : `it plays ${arm} in ${percent(chance)} of decisions`;
    if (best !== null) this.tiles.best.say(best, "with a chance of at least 95%");
    else this.tiles.best.say("Not sure", plays);
    const lift = this.#at === null ? this.#known.lift : report.lift;
    this.tiles.lift.name(lift.against == null ? "Improvement over a control" : `Improvement over ${lift.against}`);
    const sure = `${lift.significant ? "" : "not significant; "}${Math.round(100 * lift.level)}% sure at every look: between`;
    if (lift.against == null) this.tiles.lift.say("Not measured", "there is no control group");
    else if (!lift.known) this.tiles.lift.say("Not known yet", `${counted(lift.n_policy, "reward")} of its choices, ${count(lift.n_control)} of the control`);
    else if (lift.relative != null) this.tiles.lift.say(signed(lift.relative), `${sure} ${signed(lift.relative_low)} and ${signed(lift.relative_high)}`);
    else this.tiles.lift.say(number(lift.gain), `${sure} ${number(lift.low)} and ${number(lift.high)}`);
    const { mean, decisions } = totals(history);
    this.tiles.reward.say(number(mean), `on average over ${counted(decisions, "decision")} shown`);
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
    const said = [...report.when, ...report.beliefs.map((text) => `${text[0].toUpperCase()}${text.slice(1)}.`)];
    fill(this.beliefs, said.length ? el("ul", { class: "said" }, said.map((text) => el("li", {}, text))) : el("p", { class: "dim" }, "No pattern is known yet."));
    fill(this.changes, marks.length
      ? marks.map((mark) => el("li", { value: mark.number }, el("time", {}, moment.full(mark.at, this.zone)), ` ${mark.words}`))
      : el("li", { class: "none dim" }, "Nothing in the time shown."));
  }

  #drawLift(lift) {
    const node = this.charts.lift.node;
    node.classList.toggle("empty", !lift.known);
    const series = liftSeries(lift);
    if (!series) return;
    this.charts.lift.draw({ ...series, zone: this.zone, marks: this.marks });
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
      ["Training", state.frozen ? "held (frozen)" : state.upkeep_pending ? "waiting for idle time" : "up to date"],
      ["Done in the background", `${count(service.upkeep_slices)} slices of work${service.slices.count ? `, 99% under ${milliseconds(service.slices.p99)}` : ""}`],
      ["Records since the last snapshot", count(state.records - state.saved)],
      ...(service.version ? [["Service", `version ${service.version}, up for ${span(service.seconds)}`]] : []),
    ]);
    fill(this.speed, rows.length ? table : el("p", { class: "dim" }, "No decision since the service was started."), list);
  }
}

function tile(title) {
  const value = el("b"), note = el("span", { class: "dim" }), name = el("span", { class: "name" }, title);
  return {
    node: el("div", { class: "tile" }, name, value, note),
    name: (text) => say(name, text),
    say: (text, more) => { say(value, text); say(note, more); },
  };
}

function facts(list, pairs) {
  fill(list, pairs.map(([name, value]) => el("div", {}, el("dt", {}, name), el("dd", {}, value))));
}
