"use strict";
// Draws the charts from the embedded data, and makes legends, hover and sortable tables work. No libraries.
(() => {
  const charts = JSON.parse(document.getElementById("data").textContent);
  const hidden = new Set(); // policies switched off, on the whole page
  const views = [];
  const SVG = "http://www.w3.org/2000/svg";

  const make = (parent, name, attributes = {}, text = "") => {
    const node = document.createElementNS(SVG, name);
    for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
    if (text) node.textContent = text;
    return parent.appendChild(node);
  };
  const element = (parent, name, cls = "", text = "") => {
    const node = document.createElement(name);
    if (cls) node.className = cls;
    if (text) node.textContent = text;
    return parent.appendChild(node);
  };
  const ink = (colour) => (colour === "#000000" ? "var(--fg)" : colour);
  const show = (value) => {
    if (value === null || value === undefined) return "–";
    const size = Math.abs(value);
    const digits = size >= 100 || Number.isInteger(value) ? 0 : size >= 10 ? 1 : size >= 1 ? 2 : 3;
    return value.toLocaleString("en-GB", { minimumFractionDigits: digits, maximumFractionDigits: digits });
  };
  const tickText = (value) => value.toLocaleString("en-GB", { maximumFractionDigits: 6 });
  const ticks = (low, high, count) => {
    const raw = (high - low) / count || 1;
    const power = 10 ** Math.floor(Math.log10(raw));
    const step = [1, 2, 5, 10].map((m) => m * power).find((s) => s >= raw);
    const found = [];
    for (let v = Math.ceil(low / step - 1e-9) * step; v <= high + step * 1e-9; v += step) found.push(+v.toPrecision(12));
    return found;
  };
  const nearest = (xs, x) => {
    let low = 0, high = xs.length - 1;
    while (high - low > 1) { const middle = (low + high) >> 1; if (xs[middle] < x) low = middle; else high = middle; }
    return Math.abs(xs[low] - x) <= Math.abs(xs[high] - x) ? low : high;
  };
  const extent = (arrays) => {
    let low = Infinity, high = -Infinity;
    for (const array of arrays) for (const v of array) if (v !== null) { if (v < low) low = v; if (v > high) high = v; }
    return low <= high ? [low, high] : [0, 1];
  };

  class View {
    constructor(holder, chart) {
      this.holder = holder; this.chart = chart;
      holder.textContent = "";
      this.legend = element(holder, "div", "legend");
      this.box = element(holder, "div", "chart");
      this.svg = make(this.box, "svg", { class: "plot", tabindex: "0", role: "img", "aria-label": holder.dataset.label });
      this.tip = element(this.box, "div", "tip"); this.tip.hidden = true;
      if (chart.kind !== "dots") for (const series of chart.series) this.button(series); // its rows are named
      this.svg.addEventListener("pointermove", (event) => this.hover(event.clientX - this.svg.getBoundingClientRect().left));
      this.svg.addEventListener("pointerdown", (event) => this.hover(event.clientX - this.svg.getBoundingClientRect().left));
      this.svg.addEventListener("pointerleave", () => this.leave());
      this.svg.addEventListener("blur", () => this.leave());
      this.svg.addEventListener("keydown", (event) => this.key(event));
      new ResizeObserver(() => { if (this.box.clientWidth && this.box.clientWidth !== this.width) this.draw(); }).observe(this.box);
    }
    button(series) {
      const button = element(this.legend, "button");
      button.type = "button"; button.dataset.policy = series.name;
      const sample = make(button, "svg", { width: 26, height: 10, "aria-hidden": "true" });
      make(sample, "line", { x1: 0, x2: 26, y1: 5, y2: 5, stroke: ink(series.colour), "stroke-width": 3, "stroke-dasharray": series.dash.join(" ") });
      element(button, "span", "", series.name);
      button.title = "show or hide on the whole page";
      button.addEventListener("click", () => {
        if (!hidden.delete(series.name)) hidden.add(series.name);
        for (const view of views) view.draw();
      });
    }
    shown() { return this.chart.series.filter((series) => !hidden.has(series.name)); }
    draw() {
      for (const button of this.legend.children) button.setAttribute("aria-pressed", String(!hidden.has(button.dataset.policy)));
      this.width = this.box.clientWidth;
      if (!this.width) return; // inside a closed <details>; drawn when it opens
      this.leave();
      this.svg.textContent = "";
      if (this.chart.kind === "dots") this.dots(); else this.lines();
    }
    frame(height, left, yTicks, yPlace, xTicks, xPlace) {
      const right = this.width - 14, bottom = height - 40;
      this.svg.setAttribute("viewBox", `0 0 ${this.width} ${height}`);
      this.svg.setAttribute("height", height);
      for (const tick of yTicks) {
        make(this.svg, "line", { class: "grid", x1: left, x2: right, y1: yPlace(tick), y2: yPlace(tick) });
        make(this.svg, "text", { x: left - 6, y: yPlace(tick) + 4, "text-anchor": "end" }, tickText(tick));
      }
      for (const tick of xTicks) {
        const text = tickText(tick), half = text.length * 3.6, cut = xPlace(tick) + half > this.width; // 12px digits are about 7px wide
        make(this.svg, "text", { class: "tick", x: cut ? this.width - 1 : xPlace(tick), y: bottom + 16, "text-anchor": cut ? "end" : "middle" }, text);
      }
      make(this.svg, "line", { class: "axis", x1: left, x2: right, y1: bottom, y2: bottom });
      make(this.svg, "text", { x: (left + right) / 2, y: height - 6, "text-anchor": "middle" }, this.chart.xlabel);
      if (this.chart.ylabel) make(this.svg, "text", { x: 4, y: 12 }, this.chart.ylabel);
    }
    lines() {
      const shown = this.shown(), chart = this.chart;
      const height = this.width < 560 ? 270 : 340, left = 56, top = 24, right = this.width - 14, bottom = height - 40;
      const [x0, x1] = extent(chart.series.map((s) => s.x));
      let [y0, y1] = extent(shown.map((s) => s.y));
      const [lowest, highest] = extent(shown.flatMap((s) => (s.high ? [s.y, s.high, s.low] : [s.y])));
      y0 = Math.min(y0, lowest);
      y1 = Math.max(y1, Math.min(highest, 1.2 * y1)); // bands of very few trials must not dwarf the lines
      if (!chart.free) y0 = Math.min(0, y0);
      const pad = (y1 - y0 || 1) * 0.04; y1 += pad; if (chart.free) y0 -= pad;
      const px = (x) => left + ((x - x0) / (x1 - x0 || 1)) * (right - left);
      const py = (y) => bottom - ((y - y0) / (y1 - y0)) * (bottom - top);
      this.px = px; this.x0 = x0; this.x1 = x1; this.top = top; this.bottom = bottom; this.py = py;
      this.back = (p) => x0 + ((p - left) / (right - left)) * (x1 - x0);
      this.frame(height, left, ticks(y0, y1, 5), py, ticks(x0, x1, this.width < 560 ? 4 : 8), px);
      for (const s of shown) {
        if (!s.high) continue;
        const upper = s.x.map((x, i) => `${px(x).toFixed(1)},${py(Math.min(s.high[i], y1)).toFixed(1)}`);
        const lower = s.x.map((x, i) => `${px(x).toFixed(1)},${py(s.low[i]).toFixed(1)}`).reverse();
        make(this.svg, "polygon", { points: [...upper, ...lower].join(" "), fill: ink(s.colour), opacity: 0.16 });
      }
      for (const s of shown) {
        const points = s.x.map((x, i) => (s.y[i] === null ? null : `${px(x).toFixed(1)},${py(s.y[i]).toFixed(1)}`));
        make(this.svg, "polyline", {
          points: points.filter(Boolean).join(" "), fill: "none", stroke: ink(s.colour), "stroke-width": 2,
          "stroke-linejoin": "round", "stroke-dasharray": s.dash.join(" "), "data-policy": s.name,
        });
      }
      this.cursor = make(this.svg, "g");
    }
    dots() {
      const shown = this.shown();
      const names = Math.min(170, Math.max(60, ...shown.map((s) => s.name.length * 6.6 + 10)));
      const height = shown.length * 24 + 56, left = names, right = this.width - 14;
      let [x0, x1] = extent(shown.map((s) => s.x)); x0 = Math.min(0, x0); x1 += (x1 - x0 || 1) * 0.03;
      const px = (x) => left + ((x - x0) / (x1 - x0 || 1)) * (right - left);
      this.frame(height, left, [], () => 0, ticks(x0, x1, this.width < 560 ? 3 : 8), px);
      shown.forEach((s, row) => {
        const y = 14 + row * 24;
        make(this.svg, "line", { class: "grid", x1: left, x2: right, y1: y, y2: y });
        make(this.svg, "text", { x: left - 8, y: y + 4, "text-anchor": "end" }, s.name);
        s.x.forEach((x, i) => {
          const dot = make(this.svg, "circle", { cx: px(x), cy: y, r: 5, fill: ink(s.colour), opacity: 0.65, "data-policy": s.name });
          make(dot, "title", {}, `${s.name}, ${s.hover[i]}: ${show(x)}`);
        });
      });
      this.cursor = null;
    }
    hover(pixel) {
      if (!this.cursor) return;
      this.at(Math.min(this.x1, Math.max(this.x0, this.back(pixel))));
    }
    at(x) {
      this.position = x;
      const found = this.shown().map((s) => { const i = nearest(s.x, x); return { s, i, x: s.x[i], y: s.y[i] }; });
      if (!found.length) return;
      this.cursor.textContent = ""; this.tip.textContent = "";
      const place = this.px(found[0].x);
      make(this.cursor, "line", { class: "cursor", x1: place, x2: place, y1: this.top, y2: this.bottom });
      element(this.tip, "div", "dim", `${this.chart.xlabel}: ${show(found[0].x)}`);
      const table = element(this.tip, "table");
      for (const { s, i, x: sx, y } of found.sort((a, b) => b.y - a.y)) {
        if (y !== null) make(this.cursor, "circle", { cx: this.px(sx), cy: this.py(y), r: 3.5, fill: ink(s.colour) });
        const row = element(table, "tr");
        element(element(row, "td"), "i").style.background = ink(s.colour);
        element(row, "td", "", s.name); element(row, "td", "number", show(y));
        const more = s.low ? `${show(s.low[i])} to ${show(s.high[i])}` : s.hover ? s.hover[i] : "";
        if (more) element(row, "td", "dim", more);
      }
      this.tip.hidden = false;
      const width = this.tip.offsetWidth, room = this.box.clientWidth;
      const left = place > room / 2 ? place - width - 14 : place + 14;
      this.tip.style.left = `${Math.max(0, Math.min(left, room - width))}px`;
      this.tip.style.top = `${this.top}px`;
    }
    leave() { this.tip.hidden = true; if (this.cursor) this.cursor.textContent = ""; }
    key(event) {
      const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
      if (!step || !this.cursor) return;
      event.preventDefault();
      const start = this.position === undefined ? this.x0 : this.position;
      this.at(Math.min(this.x1, Math.max(this.x0, start + (step * (this.x1 - this.x0)) / 40)));
    }
  }

  for (const holder of document.querySelectorAll("[data-chart]")) {
    const view = new View(holder, charts[holder.dataset.chart]);
    views.push(view); view.draw();
  }
  const hint = (box) => box.parentElement.classList.toggle("wide", box.scrollWidth > box.clientWidth + 1);
  const watch = new ResizeObserver((entries) => { for (const { target } of entries) hint(target); });
  for (const box of document.querySelectorAll(".scroll")) watch.observe(box); // also when a section opens
  for (const table of document.querySelectorAll("table.sortable")) {
    const heads = [...table.tHead.rows[0].cells];
    heads.forEach((head, column) => head.firstElementChild.addEventListener("click", () => {
      const rising = head.getAttribute("aria-sort") !== "ascending";
      for (const other of heads) other.setAttribute("aria-sort", "none");
      head.setAttribute("aria-sort", rising ? "ascending" : "descending");
      const key = (row) => { const cell = row.cells[column]; return cell.dataset.value === undefined ? cell.textContent : Number(cell.dataset.value); };
      const order = (a, b) => {
        const left = key(a), right = key(b);
        if (typeof left !== typeof right) return typeof left === "number" ? -1 : 1; // unknown figures last
        const compared = typeof left === "number" ? left - right : left.localeCompare(right);
        return rising ? compared : -compared;
      };
      table.tBodies[0].append(...[...table.tBodies[0].rows].sort(order));
    }));
  }
})();
