// Asking the service. The token lives in this tab's sessionStorage and travels in a header, never in an address.

const KEY = "tidepull-token";
const PATIENCE = 30_000;

/** An answer that is no success; status 0: there was no answer. */
export class Refused extends Error {
  constructor(status, detail) {
    super(detail);
    this.status = status;
  }
}

export const token = {
  get: () => sessionStorage.getItem(KEY),
  set: (clear) => sessionStorage.setItem(KEY, clear),
  forget: () => sessionStorage.removeItem(KEY),
};

async function ask(method, address, body) {
  const headers = token.get() ? { authorization: `Bearer ${token.get()}` } : {};
  if (body !== undefined) headers["content-type"] = "application/json";
  let answer;
  try {
    answer = await fetch(address, {
      method, headers, body: body === undefined ? undefined : JSON.stringify(body),
      cache: "no-store", credentials: "omit", redirect: "error", signal: AbortSignal.timeout(PATIENCE),
    });
  } catch {
    throw new Refused(0, "The server does not answer.");
  }
  if (answer.ok) return answer;
  let detail = `The server answered ${answer.status}.`;
  try {
    detail = (await answer.json()).detail ?? detail;
  } catch { /* no problem document: the status says it */ }
  throw new Refused(answer.status, detail);
}

function addressOf(path, query) {
  const given = Object.entries(query).filter(([, value]) => value != null);
  return given.length ? `${path}?${new URLSearchParams(given)}` : path;
}

/** GET as JSON; `query` without what is null. */
export const get = async (path, query = {}) => (await ask("GET", addressOf(path, query))).json();

/** POST a body as JSON (undefined: none). */
export const post = async (path, body) => (await ask("POST", path, body)).json();

/** GET a file, and let the browser save it under a name. */
export async function download(path, query, name) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(await (await ask("GET", addressOf(path, query))).blob());
  link.download = name;
  link.click();
  URL.revokeObjectURL(link.href);
}

/** What was known at a moment: the service replays its ledger, and is asked again until that is done; `waits` is told how far it is, and ends it with false. */
export async function getPast(path, query, waits) {
  for (;;) {
    try {
      return await get(path, query);
    } catch (error) {
      if (error.status !== 429 || !error.message.startsWith("Replaying") || waits(error.message) === false) throw error;
    }
  }
}

/** The path of an agent. */
export const agentPath = (name, rest = "") => `/v1/agents/${encodeURIComponent(name)}${rest}`;
