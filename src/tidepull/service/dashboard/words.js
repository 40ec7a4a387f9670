// Numbers and moments in words.

const SPANS = [["day", 86_400], ["hour", 3600], ["minute", 60], ["second", 1]];

/** A count: 1,234. */
export const count = (n) => n.toLocaleString("en-GB");

/** A number of things: "1 decision", "2,000 decisions". */
export const counted = (n, thing) => `${count(n)} ${thing}${n === 1 ? "" : "s"}`;

/** A number with three digits that matter. */
export function number(value) {
  if (value == null || !Number.isFinite(value)) return "–";
  const size = Math.abs(value);
  if (size >= 1000) return value.toLocaleString("en-GB", { maximumFractionDigits: 0 });
  return Number(value.toPrecision(size < 0.1 ? 2 : 3)).toLocaleString("en-GB", { maximumFractionDigits: 6 });
}

/** A share: 42%. */
export function percent(value, digits = 0) {
  if (value == null || !Number.isFinite(value)) return "–";
  if (value > 0 && value < 0.005 && digits === 0) return "<1%";
  return `${(100 * value).toFixed(digits)}%`;
}

/** A difference: +12%. */
export function signed(value) {
  if (value == null || !Number.isFinite(value)) return "–";
  if (value === 0) return "0%";
  const digits = Math.abs(value) < 0.1 ? 1 : 0;
  return `${value < 0 ? "−" : "+"}${Math.abs(100 * value).toFixed(digits)}%`;
}

/** A length of time by its largest unit: 5 minutes. */
export function span(seconds) {
  if (seconds == null) return "–";
  for (const [name, size] of SPANS) {
    if (seconds >= size) {
      const n = seconds / size;
      const shown = n < 10 && name !== "second" && n % 1 >= 0.05 ? n.toFixed(1).replace(/\.0$/, "") : Math.round(n);
      return `${shown} ${name}${Number(shown) === 1 ? "" : "s"}`;
    }
  }
  return seconds > 0 ? "under a second" : "at once";
}

/** How long ago a moment was. */
export function ago(at, now = Date.now() / 1000) {
  if (at == null) return "never";
  if (now - at < 2) return now - at > -60 ? "just now" : "in the future";
  return `${span(now - at)} ago`;
}

/** Milliseconds: 0.5 ms; what took longer than the service counts is said so. */
export function milliseconds(value) {
  if (value == null) return "over 5 s";
  return value >= 1000 ? `${number(value / 1000)} s` : `${number(value)} ms`;
}

const KNOWN = new Map();

function writer(zone, options) {
  const key = zone + JSON.stringify(options);
  if (!KNOWN.has(key)) KNOWN.set(key, new Intl.DateTimeFormat("en-GB", { timeZone: zone, ...options }));
  return KNOWN.get(key);
}

/** Whether this browser knows a time zone. */
export function knowsZone(zone) {
  try {
    return Boolean(writer(zone, {}));
  } catch {
    return false;
  }
}

/** Moments in one time zone. */
export const moment = {
  full: (at, zone) => writer(zone, { day: "numeric", month: "short", year: "numeric", hour: "2-digit", minute: "2-digit" })
    .format(at * 1000),
  short: (at, zone) => writer(zone, { weekday: "short", day: "numeric", month: "short", hour: "2-digit", minute: "2-digit" })
    .format(at * 1000),
  day: (at, zone) => writer(zone, { day: "numeric", month: "short" }).format(at * 1000),
  time: (at, zone) => writer(zone, { hour: "2-digit", minute: "2-digit" }).format(at * 1000),
  second: (at, zone) => writer(zone, { hour: "2-digit", minute: "2-digit", second: "2-digit" }).format(at * 1000),
};

/** Seconds by which the clocks of a zone are ahead of UTC. */
export function offset(at, zone) {
  const there = window.uPlot.tzDate(new Date(at * 1000), zone);
  const shown = Date.UTC(there.getFullYear(), there.getMonth(), there.getDate(), there.getHours(), there.getMinutes());
  return Math.round((shown / 1000 - at) / 900) * 900;
}

/** Weekday (0: Monday) and hour in a zone. */
export function weekHour(at, zone) {
  const local = at + offset(at, zone);
  return [(Math.floor(local / 86_400) + 3) % 7, Math.floor((local % 86_400) / 3600)];
}

/** A day in a zone as a date input has it: 2026-07-01. */
export function dateOf(at, zone) {
  return new Date((at + offset(at, zone)) * 1000).toISOString().slice(0, 10);
}

/** When the clocks of a zone show a date and time such as 2026-07-01T12:00. */
export function localMoment(text, zone) {
  const shown = Date.parse(`${text}Z`) / 1000;
  return shown - offset(shown - offset(shown, zone), zone);
}

/** When a day begins in a zone. */
export const midnight = (date, zone) => localMoment(`${date}T00:00`, zone);
