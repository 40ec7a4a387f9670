// What an admin may do to an agent: each button opens a dialog that says what will happen.

import { agentPath, download, post } from "./api.js";
import { el, fill } from "./dom.js";

/**
 * A button that opens a dialog; `fields` are labelled inputs by name, `act(values)` does it.
 * An error stays in the dialog; `done()` is called when it is closed after a success.
 */
export function actionButton({ label, title, text, fields = {}, act, done }) {
  const said = el("p", { role: "alert", class: "wrong", hidden: true });
  const submit = el("button", { type: "submit", class: "main" }, title);
  const send = async (event) => {
    event.preventDefault();
    submit.disabled = true;
    try {
      await act(Object.fromEntries(Object.entries(fields).map(([name, [, input]]) => [name, input.value.trim()])));
      dialog.close();
      done();
    } catch (error) {
      if (error.status === undefined) throw error;
      fill(said, error.message);
      said.hidden = false;
    } finally {
      submit.disabled = false;
    }
  };
  const dialog = el("dialog", { "aria-label": title, close: () => dialog.remove() },
    el("form", { submit: send }, el("h2", {}, title), el("p", {}, text),
      Object.values(fields).map(([name, input]) => el("label", {}, name, input)), said,
      el("p", { class: "row" }, submit, el("button", { type: "button", click: () => dialog.close() }, "Cancel"))));
  const open = () => {
    said.hidden = true;
    document.body.append(dialog);
    dialog.showModal();
  };
  return el("button", { type: "button", click: open }, label);
}

const choice = (options) => el("select", {}, options.map(([value, text]) => el("option", { value }, text)));

/** Buttons for the whole agent; `moment(text)` reads a date and time as the page shows them. */
export function agentButtons(name, frozen, moment, done) {
  const path = (rest) => agentPath(name, rest);
  return [
    actionButton({
      label: "Add an arm", title: "Add the arm", done, fields: { label: ["Label", el("input", { required: true, maxlength: 256 })] },
      text: "It can be chosen from the next decision on. A retired arm of that label comes back.",
      act: ({ label }) => post(path("/arms"), { op: "add", label }),
    }),
    frozen
      ? actionButton({ label: "Learn again", title: "Learn again", done, text: "Rewards are learnt again. Those that came meanwhile are not.", act: () => post(path("/unfreeze")) })
      : actionButton({ label: "Freeze", title: "Freeze", done, text: "Decisions go on as they are, and nothing is learnt until you press Learn again.", act: () => post(path("/freeze")) }),
    actionButton({
      label: "Roll back", title: "Roll back", done, fields: { to: ["To", el("input", { type: "datetime-local", required: true })] },
      text: "What was learnt after this moment is taken back, for good. The decisions stay in the ledger. The time is in the zone that the page shows.",
      act: ({ to }) => post(path("/rollback"), { to: moment(to) }),
    }),
    actionButton({
      label: "Download", title: "Download", done, fields: { format: ["Format", choice([["csv", "CSV"], ["jsonl", "JSON lines"], ["parquet", "Parquet"]])] },
      text: "Every decision with its context, chances and reward, as a file.",
      act: ({ format }) => download(path("/export"), { format }, `${name}.${format}`),
    }),
  ];
}

/** A button that retires an arm, or adds a retired one again. */
export function armButton(name, { label, retired }, done) {
  const change = (op) => () => post(agentPath(name, "/arms"), { op, label });
  return retired
    ? actionButton({ label: "Add again", title: `Add ${label} again`, done, text: "It can be chosen from the next decision on.", act: change("add") })
    : actionButton({ label: "Retire", title: `Retire ${label}`, done, text: "It is chosen no more. What is known of it is kept.", act: change("retire") });
}

/** A button that gives a share of the traffic to a candidate. */
export function promoteButton(name, shadow, done) {
  return actionButton({
    label: "Promote", title: `Promote ${shadow}`, done,
    fields: { share: ["Share of the traffic", choice([["0.1", "10%"], ["0.25", "25%"], ["0.5", "50%"], ["1", "100%: it becomes the policy"], ["0", "0%: back to the present policy"]])] },
    text: "So much of the traffic is decided by this candidate from now on. A share of 0% takes it back.",
    act: ({ share }) => post(agentPath(name, "/promote"), { shadow, share: Number(share) }),
  });
}
