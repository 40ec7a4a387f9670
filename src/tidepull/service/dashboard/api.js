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

/** GET as JSON; `query` without what is null. */
export async function get(path, query = {}) {
  const given = Object.entries(query).filter(([, value]) => value != null);
  const address = given.length ? `${path}?${new URLSearchParams(given)}` : path;
  const headers = token.get() ? { authorization: `Bearer ${token.get()}` } : {};
  let answer;
  try {
    answer = await fetch(address, {
      headers, cache: "no-store", credentials: "omit", redirect: "error", signal: AbortSignal.timeout(PATIENCE),
    });
  } catch {
    throw new Refused(0, "The server does not answer.");
  }
  if (answer.ok) return answer.json();
  let detail = `The server answered ${answer.status}.`;
  try {
    detail = (await answer.json()).detail ?? detail;
  } catch { /* no problem document: the status says it */ }
  throw new Refused(answer.status, detail);
}

/** The path of an agent. */
export const agentPath = (name, rest = "") => `/v1/agents/${encodeURIComponent(name)}${rest}`;
