// First steps: lines for a shell, for a service without agents and for an agent without decisions.

import { token } from "./api.js";
import { el, panel } from "./dom.js";

const JSON_TYPE = "-H 'Content-Type: application/json'";

function quoted(value) {
  return `'${JSON.stringify(value).replaceAll("'", "'\\''")}'`;
}

function curl(path, body) {
  const header = token.get() ? ` \\\n  -H "Authorization: Bearer $TIDEPULL_TOKEN"` : "";
  return `curl ${location.origin}${path}${header} \\\n  ${JSON_TYPE} \\\n  -d ${quoted(body)}`;
}

/** A line with a button that copies it. */
function line(text) {
  const button = el("button", {
    type: "button",
    click: async () => {
      await navigator.clipboard.writeText(text);
      button.textContent = "Copied";
    },
  }, "Copy");
  return el("div", { class: "line" }, el("pre", { tabindex: "0" }, text), button);
}

/** A value that fits a field, as an example. */
function example(field) {
  if (field.values?.length) return field.values[0];
  return { Number: 1, Cyclic: 1, Boolean: true, Tags: ["new"], Timestamp: new Date().toISOString().slice(0, 16) }[field.kind] ?? "something";
}

/** For an agent that nobody has asked yet. */
export function firstDecision(state) {
  const fields = Object.entries(state.context ?? {}).map(([name, field]) => [name, example(field)]);
  const body = fields.length ? { context: Object.fromEntries(fields) } : {};
  const scope = token.get() ? " The token needs the scope decide." : "";
  return panel("First steps", null,
    el("p", {}, `Ask it which arm to play. The answer names the arm and has an id.${scope}`),
    line(curl(`/v1/agents/${state.name}/choose`, body)),
    el("p", {}, "Later, say what that was worth, with the id of the answer:"),
    line(curl(`/v1/agents/${state.name}/reward`, { id: "THE ID", reward: 1 })),
    el("p", { class: "note" }, "This page follows by itself as soon as the first decision is made."));
}

/** For a service without agents. */
export function firstAgent() {
  const scope = token.get() ? " The token needs the scope admin." : "";
  return panel("First steps", null,
    el("p", {}, `There is no agent yet. This makes one that chooses between two banners:${scope}`),
    line(curl("/v1/agents", { name: "shop", arms: ["blue", "green"], context: { device: ["phone", "desktop"] } })),
    el("p", { class: "note" }, "It appears here as soon as it is there."));
}
