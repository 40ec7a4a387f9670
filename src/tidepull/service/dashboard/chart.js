// A chart over time: uPlot draws; the legend, the keyboard and the marks of changes are ours.

import { faded, resolved } from "./colours.js";
import { el, fill, say } from "./dom.js";
import { moment } from "./words.js";

const HEIGHT = 210;
const LEAST_DRAG = 8;
const GROUP = "time";

/**
 * `kind`: "lines" (with a band where a series has `low` and `high`), "stack" (shares of a whole) or "steps".
 * `format` writes values; `zoomed(since, until)` and `reset()` are told what the user wants to see.
 * Draw it with `{x, series: [{label, colour, values, low, high, bold, summary}], marks, since, until, zone, range}`.
 */
export class Chart {
  #plot = null;
  #shape = "";
  #hidden = new Set();
  #data = null;

  constructor({ title, note, kind, format, zoomed, reset, synced = true }) {
    Object.assign(this, { title, kind, format, zoomed, reset, synced });
    this.legend = el("div", { class: "legend" });
    this.host = el("div", {
      class: "plot", tabindex: "0", role: "group",
      "aria-label": `${title}. Arrow keys read values${zoomed ? ", plus and minus zoom, 0 shows everything" : ""}.`,
      keydown: (event) => this.#key(event),
      blur: () => this.#leave(),
    });
    this.spoken = el("output", { class: "unseen", "aria-live": "polite" });
    const id = `chart-${title.toLowerCase().replace(/[^a-z]+/g, "-")}`;
    this.node = el("section", { class: "panel chart", "aria-labelledby": id },
      el("h2", { id }, title), note ? el("p", { class: "note" }, note) : null, this.legend, this.host, this.spoken);
    new ResizeObserver(() => this.#resize()).observe(this.host);
  }

  draw(data) {
    this.#data = data;
    const shown = data.series.filter((series) => !this.#hidden.has(series.label));
    const shape = JSON.stringify([data.zone, shown.map((series) => [series.label, series.colour, Boolean(series.low)])]);
    if (shape !== this.#shape) this.#build(shown, shape);
    else {
      this.#plot.setData(this.#columns(shown), false);
      this.#plot.setScale("x", { min: data.since, max: data.until });
    }
    this.#tell(this.#plot?.cursor.idx);
  }

  /** The theme has changed. */
  recolour() {
    this.#plot?.redraw(false);
  }

  destroy() {
    this.#plot?.destroy();
    this.#plot = null;
  }

  #build(shown, shape) {
    this.destroy();
    this.#shape = shape;
    if (!this.host.clientWidth) {
      this.#shape = "";
      return;
    }
    const { series, bands } = this.#drawn(shown);
    this.#plot = new window.uPlot({
      width: this.host.clientWidth,
      height: HEIGHT,
      padding: [14, 22, 0, 0],
      legend: { show: false },
      tzDate: (at) => window.uPlot.tzDate(new Date(at * 1000), this.#data.zone),
      cursor: {
        y: false,
        sync: this.synced ? { key: GROUP, setSeries: false } : undefined,
        drag: { x: Boolean(this.zoomed), y: false, setScale: false },
        points: { show: this.kind === "lines", size: 7 },
        bind: { dblclick: () => () => this.reset?.() },
      },
      scales: { x: { time: true, range: () => [this.#data.since, this.#data.until] }, y: { range: (_, low, high) => this.#height(low, high) } },
      axes: [
        { ...axis(), size: 30, space: 70, values: (_, splits, __, ___, step) => splits.map((at) => ticks(at, step, this.#data.zone)) },
        { ...axis(), size: 50, space: 34, values: (_, splits) => splits.map((value) => this.format(value)) },
      ],
      series: [{}, ...series],
      bands,
      hooks: {
        setCursor: [(plot) => this.#tell(plot.cursor.idx)],
        setSelect: [(plot) => this.#selected(plot)],
        draw: [(plot) => this.#mark(plot)],
      },
    }, this.#columns(shown), this.host);
  }

  /** uPlot's series and bands for what is shown, in the order of `#columns`. */
  #drawn(shown) {
    if (this.kind === "stack") {
      const series = shown.map((one) => ({
        stroke: () => resolved(one.colour), width: 1, points: { show: false }, paths: window.uPlot.paths.stepped({ align: 1 }),
      }));
      const bands = shown.map((one, n) => ({ series: [n + 2, n + 1], fill: () => faded(one.colour, 0.75) }));
      return { series: [{ width: 0, points: { show: false }, paths: window.uPlot.paths.stepped({ align: 1 }) }, ...series], bands };
    }
    const series = [], bands = [];
    for (const one of shown) {
      const steps = this.kind === "steps";
      if (one.low) {
        const edge = { stroke: "transparent", width: 0, points: { show: false }, spanGaps: true };
        series.push(edge, edge);
        bands.push({ series: [series.length, series.length - 1], fill: () => faded(one.colour, 0.16) });
      }
      series.push({
        stroke: () => resolved(one.colour), width: one.bold ? 2.5 : 1.5, spanGaps: true,
        fill: steps ? () => faded(one.colour, 0.3) : undefined,
        points: steps ? { show: false } : { size: 4, width: 0, fill: () => resolved(one.colour) },
        paths: steps ? window.uPlot.paths.stepped({ align: 1 }) : undefined,
      });
    }
    return { series, bands };
  }

  #columns(shown) {
    const x = this.kind === "lines" ? this.#data.x.map((at) => at + this.#data.step / 2) : [...this.#data.x, this.#data.until];
    if (this.kind === "steps") return [x, ...shown.map((one) => [...one.values, one.values.at(-1)])];
    if (this.kind === "lines") return [x, ...shown.flatMap((one) => (one.low ? [one.low, one.high, one.values] : [one.values]))];
    const columns = [x.map(() => 0)];
    for (const one of shown) {
      const below = columns.at(-1);
      columns.push([...one.values, one.values.at(-1)].map((value, n) => (value == null ? null : below[n] + value)));
    }
    return [x, ...columns];
  }

  #height(low, high) {
    if (this.kind === "stack") return [0, 1];
    if (this.#data.range) return this.#data.range;
    if (low == null || high == null) return [0, 1];
    const least = Math.min(0, low), most = Math.max(0, high);
    const room = 0.08 * (most - least || 1);
    return [least < 0 ? least - room : 0, most + room];
  }

  #resize() {
    const width = this.host.clientWidth;
    if (!width || !this.#data) return;
    if (this.#plot) this.#plot.setSize({ width, height: HEIGHT });
    else this.draw(this.#data);
  }

  #selected(plot) {
    const { left, width } = plot.select;
    if (width < LEAST_DRAG) return;
    const since = plot.posToVal(left, "x"), until = plot.posToVal(left + width, "x");
    plot.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
    this.zoomed(since, until);
  }

  /** Dashed lines where something changed, with the numbers that the list of changes has. */
  #mark(plot) {
    const { ctx, bbox } = plot, ratio = devicePixelRatio;
    ctx.save();
    ctx.font = `600 ${10 * ratio}px system-ui, sans-serif`;
    ctx.textAlign = "center";
    for (const { at, number } of this.#data.marks ?? []) {
      if (at < this.#data.since || at > this.#data.until) continue;
      const x = Math.round(plot.valToPos(at, "x", true));
      ctx.strokeStyle = ctx.fillStyle = resolved("var(--mark)");
      ctx.lineWidth = ratio;
      ctx.setLineDash([4 * ratio, 3 * ratio]);
      ctx.beginPath();
      ctx.moveTo(x, bbox.top);
      ctx.lineTo(x, bbox.top + bbox.height);
      ctx.stroke();
      ctx.fillText(String(number), x, bbox.top - 3 * ratio);
    }
    ctx.restore();
  }

  #key(event) {
    const plot = this.#plot;
    if (!plot || event.ctrlKey || event.altKey || event.metaKey) return;
    const { since, until } = this.#data, middle = (since + until) / 2, half = (until - since) / 2;
    const moves = { ArrowLeft: -1, ArrowRight: 1 };
    if (event.key in moves) {
      const last = this.#data.x.length - 1;
      const from = plot.cursor.idx ?? (moves[event.key] > 0 ? -1 : last + 1);
      const place = Math.min(last, Math.max(0, from + moves[event.key]));
      plot.setCursor({ left: plot.valToPos(plot.data[0][place], "x"), top: 10 });
      say(this.spoken, this.#sentence(place));
    } else if (this.zoomed && (event.key === "+" || event.key === "=")) this.zoomed(middle - half / 2, middle + half / 2);
    else if (this.zoomed && event.key === "-") this.zoomed(middle - half * 2, middle + half * 2);
    else if (this.reset && event.key === "0") this.reset();
    else if (event.key === "Escape") this.#leave();
    else return;
    event.preventDefault();
  }

  #leave() {
    this.#plot?.setCursor({ left: -10, top: -10 });
  }

  #sentence(place) {
    const said = this.#data.series.map((one) => `${one.label} ${this.#value(one, place)}`);
    return `${moment.short(this.#data.x[place], this.#data.zone)}: ${said.join(", ")}`;
  }

  #value(one, place) {
    const value = one.values[place];
    if (value == null) return "none";
    const low = one.low?.[place], high = one.high?.[place];
    return low == null ? this.format(value) : `${this.format(value)} (${this.format(low)} to ${this.format(high)})`;
  }

  /** The legend: what is under the cursor, or else the whole range. */
  #tell(idx) {
    if (!this.#data) return;
    const place = idx == null ? null : Math.min(idx, this.#data.x.length - 1);
    const items = this.#data.series;
    if (this.legend.children.length !== items.length + 1 || items.some((one, n) => this.legend.children[n].dataset.label !== one.label)) {
      fill(this.legend, items.map((one) => this.#item(one)), el("span", { class: "when" }));
    }
    items.forEach((one, n) => {
      const [swatch, , value] = this.legend.children[n].children;
      swatch.style.backgroundColor = one.colour;
      say(value, place == null ? one.summary ?? "" : this.#value(one, place));
    });
    say(this.legend.lastChild, place == null ? this.#data.caption ?? "" : moment.short(this.#data.x[place], this.#data.zone));
  }

  #item(one) {
    const button = el("button", {
      type: "button", "aria-pressed": String(!this.#hidden.has(one.label)),
      click: () => {
        if (this.#hidden.has(one.label)) this.#hidden.delete(one.label);
        else this.#hidden.add(one.label);
        button.setAttribute("aria-pressed", String(!this.#hidden.has(one.label)));
        this.draw(this.#data);
      },
    }, el("i"), el("span", { class: "label" }, one.label), el("b"));
    button.dataset.label = one.label;
    return button;
  }
}

function axis() {
  return {
    stroke: () => resolved("var(--dim)"),
    font: "12px system-ui, sans-serif",
    grid: { stroke: () => resolved("var(--grid)"), width: 1 },
    ticks: { show: false },
    border: { show: false },
  };
}

/** A tick of the axis of time: hours by day, else days. */
function ticks(at, step, zone) {
  if (step >= 86_400) return moment.day(at, zone);
  if (step < 60) return moment.second(at, zone);
  const time = moment.time(at, zone);
  return time === "00:00" ? moment.day(at, zone) : time;
}
