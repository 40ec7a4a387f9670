// One colour for each arm, kept while the page is open; canvases need them resolved for the theme that is on.

export const PLACES = 8;
const probe = document.createElement("span");

/** The value that a CSS colour has now. */
export function resolved(colour) {
  if (!probe.isConnected) {
    probe.hidden = true;
    document.body.append(probe);
  }
  probe.style.color = colour;
  return getComputedStyle(probe).color;
}

/** A resolved colour, made transparent. */
export function faded(colour, alpha) {
  const [red, green, blue] = resolved(colour).match(/[\d.]+/g);
  return `rgba(${red}, ${green}, ${blue}, ${alpha})`;
}

/** Gives labels their colours: free ones first, and none is taken away from an arm that is still shown. */
export class Palette {
  #of = new Map();

  /** Make sure that these labels, at most `PLACES`, have colours of their own. */
  assign(labels) {
    for (const known of [...this.#of.keys()]) if (!labels.includes(known)) this.#of.delete(known);
    const taken = new Set(this.#of.values());
    const free = Array.from({ length: PLACES }, (_, n) => n).filter((n) => !taken.has(n));
    for (const label of labels) if (!this.#of.has(label)) this.#of.set(label, free.shift());
  }

  /** The colour of a label as CSS; grey for the rest. */
  of(label) {
    const place = this.#of.get(label);
    return place === undefined ? "var(--rest)" : `var(--arm-${place})`;
  }
}
