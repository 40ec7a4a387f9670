// Elements without HTML in strings: whatever comes from outside is text and stays text.

/** An element: `attributes` as given (functions listen, `class` and `hidden` as usual), then children or texts. */
export function el(tag, attributes = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === "function") node.addEventListener(name, value);
    else if (value === true) node.setAttribute(name, "");
    else if (value !== false && value != null) node.setAttribute(name, value);
  }
  node.append(...children.flat().filter((child) => child != null && child !== false));
  return node;
}

/** Put texts or elements in place of what a node has. */
export function fill(node, ...children) {
  node.replaceChildren(...children.flat().filter((child) => child != null && child !== false));
  return node;
}

/** Set a text only if it is another one, so that screen readers are not told twice. */
export function say(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

/** A titled panel; `note` is a sentence under its title. */
export function panel(title, note, ...children) {
  const id = `panel-${title.toLowerCase().replace(/[^a-z]+/g, "-")}`;
  return el("section", { class: "panel", "aria-labelledby": id },
    el("h2", { id }, title), note ? el("p", { class: "note" }, note) : null, ...children);
}
