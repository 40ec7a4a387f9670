// Which view is shown, and when it is asked for what is new.

import { get, token } from "./api.js";
import { AgentView } from "./agent.js";
import { el, fill, say } from "./dom.js";
import { login } from "./login.js";
import { Overview } from "./overview.js";
import { moment } from "./words.js";

const EVERY = 5000;
const PATIENT = 20;
const SELDOM = 60_000;
const here = (id) => document.getElementById(id);
const content = here("content"), trouble = here("trouble"), pulse = here("pulse"), select = here("agents");
const localZone = Intl.DateTimeFormat().resolvedOptions().timeZone;

let view = null, viewed = null, timer = 0, running = false, wanted = false, paused = false, answered = null;

const chosen = () => decodeURIComponent(location.hash.replace(/^#\/?/, ""));

/** Ask now; if that is under way, once more after it. */
async function refresh() {
  clearTimeout(timer);
  if (running) {
    wanted = true;
    return;
  }
  running = true;
  const started = performance.now();
  let took = 0;
  try {
    await look();
    took = performance.now() - started;
    answered = Date.now() / 1000;
    trouble.hidden = true;
    content.classList.remove("stale");
  } catch (error) {
    if (error.status === undefined) throw error;
    failed(error);
  } finally {
    running = false;
    beat();
    if (wanted) {
      wanted = false;
      refresh();
    } else if (!paused && !document.hidden && viewed !== "login") timer = setTimeout(refresh, Math.min(SELDOM, Math.max(EVERY, PATIENT * took)));
  }
}

async function look() {
  const { agents, scopes } = await get("/v1/agents");
  here("leave").hidden = !token.get();
  const only = agents.length === 1 ? agents[0].name : "";
  const name = chosen() || (location.hash === "" ? only : "");
  list(agents, name);
  show(name || "all agents", () => (name ? new AgentView(name, refresh) : new Overview()));
  await view.refresh(agents, scopes);
}

/** Put a view in place, unless it is there already. */
function show(key, make) {
  if (viewed === key) return;
  view?.destroy?.();
  const moved = viewed !== null;
  view = make();
  viewed = key;
  fill(content, view.node);
  document.title = key === "all agents" ? "tidepull" : `${key} · tidepull`;
  if (view.focus) view.focus();
  else if (moved) content.focus();
}

function list(agents, name) {
  here("picker").hidden = agents.length === 0;
  const names = ["", ...agents.map((agent) => agent.name)];
  if (names.join() !== [...select.options].map((option) => option.value).join()) {
    fill(select, names.map((one) => el("option", { value: one }, one || "All agents")));
  }
  select.value = name;
}

function failed(error) {
  if (error.status === 401) {
    const said = token.get() ? error.message : "This service requires an access token.";
    token.forget();
    viewed = null;
    show("login", () => login(said, () => refresh()));
    trouble.hidden = true;
    return;
  }
  const since = answered === null ? "" : ` What is shown is from ${moment.second(answered, localZone)}.`;
  const sentence = {
    0: `The server does not answer. Trying again every few seconds.${since}`,
    403: `${error.message} Ask for a token that may, or forget this one and enter another.`,
    404: `${error.message} Choose another agent above.`,
  }[error.status] ?? `${error.message}${since}`;
  say(trouble, sentence);
  trouble.hidden = false;
  content.classList.add("stale");
}

/** The line at the top that says whether the page is alive. */
function beat() {
  const alive = trouble.hidden && viewed !== "login";
  pulse.className = `pulse ${paused ? "" : alive ? "alive" : "lost"}`;
  const at = answered === null ? "" : ` · ${moment.second(answered, localZone)}`;
  say(pulse, paused ? `paused${at}` : viewed === "login" ? "" : alive ? `live${at}` : "no answer");
}

const THEMES = ["system", "light", "dark"];

function theme(name) {
  if (name === "system") document.documentElement.removeAttribute("data-theme");
  else document.documentElement.dataset.theme = name;
  here("theme").textContent = `Theme: ${name}`;
  view?.recolour?.();
}

let themed = localStorage.getItem("tidepull-theme") ?? "system";
theme(themed);
here("theme").addEventListener("click", () => {
  themed = THEMES[(THEMES.indexOf(themed) + 1) % THEMES.length];
  localStorage.setItem("tidepull-theme", themed);
  theme(themed);
});
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => view?.recolour?.());

here("pause").addEventListener("click", () => {
  paused = !paused;
  here("pause").setAttribute("aria-pressed", String(paused));
  here("pause").textContent = paused ? "Resume" : "Pause";
  clearTimeout(timer);
  if (paused) beat();
  else refresh();
});
here("leave").addEventListener("click", () => {
  token.forget();
  viewed = null;
  refresh();
});
select.addEventListener("change", () => { location.hash = `#/${select.value}`; });
addEventListener("hashchange", () => refresh());
document.addEventListener("visibilitychange", () => {
  clearTimeout(timer);
  if (!document.hidden && !paused) refresh();
});
refresh();
