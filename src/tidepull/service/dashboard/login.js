// Asking for a token.

import { token } from "./api.js";
import { el } from "./dom.js";

/** A form; `entered()` is called when there is a token to try. */
export function login(said, entered) {
  const field = el("input", { id: "token", type: "password", autocomplete: "off", spellcheck: "false", required: true, placeholder: "tp_…" });
  const submit = (event) => {
    event.preventDefault();
    token.set(field.value.trim());
    entered();
  };
  const form = el("form", { class: "panel login", submit }, el("h1", {}, "Sign in"),
    el("p", { role: "alert" }, said),
    el("label", { for: "token" }, "Access token"), field,
    el("button", { type: "submit" }, "Open the dashboard"),
    el("p", { class: "note" }, "A token with the scope read is enough. It is kept in this tab until you close it."),
    el("pre", { class: "note" }, "tidepull token new --agent '*' --scope read"));
  return { node: form, focus: () => field.focus() };
}
