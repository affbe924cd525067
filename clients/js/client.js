// The client of the API: over HTTP, with keys made for what has none, so that each call can be sent again until it is answered.
import http from "node:http";
import https from "node:https";
import { randomUUID } from "node:crypto";

export class HapaxError extends Error { // what the server refuses
  constructor(status, problem) {
    super(problem?.detail || problem?.title || `HTTP status ${status}`);
    Object.assign(this, { name: "HapaxError", status, code: problem?.code, problem });
  }
}

const units = { ms: 1, s: 1e3, m: 6e4, h: 36e5, d: 864e5 };
export function duration(d) { // "250ms" "5s" "2m" "24h" "7d", or milliseconds
  const m = typeof d === "string" && /^([1-9]\d*)(ms|s|m|h|d)$/.exec(d);
  if (!m && !(Number.isSafeInteger(d) && d > 0)) throw new TypeError(`${JSON.stringify(d)} is no duration, such as "30s"`);
  return m ? m[1] * units[m[2]] : d;
}
export const encode = (s) => encodeURIComponent(s).replace(/[!'()*]/g, (c) => "%" + c.charCodeAt(0).toString(16).toUpperCase());
export const sleep = (ms) => new Promise((done) => setTimeout(done, ms));
export const clock = () => performance.now(); // monotonic

export class Api {
  constructor(o = {}) {
    this.base = new URL((o.server || process.env.HAPAX_SERVER || "http://127.0.0.1:7411").replace(/\/*$/, "/api/v1/"));
    const key = o.key || process.env.HAPAX_KEY;
    this.headers = { "Content-Type": "application/json", ...(key && { Authorization: "Bearer " + key }),
      ...(o.workspace && { "Hapax-Workspace": o.workspace }), ...(o.requester && { "Hapax-Requester": o.requester }) };
    this.timeout = duration(o.timeout ?? "30s"); // of one try
    this.patience = duration(o.patience ?? "2m"); // of a call with all its tries
    this.http = this.base.protocol === "https:" ? https : http;
    this.agent = new this.http.Agent({ keepAlive: true });
  }

  once(method, path, text, { headers, timeout = this.timeout, signal } = {}) {
    return new Promise((resolve, reject) => {
      const request = this.http.request(new URL(path, this.base), { method, agent: this.agent, signal,
        headers: { ...this.headers, ...headers, ...(text !== undefined && { "Content-Length": Buffer.byteLength(text) }) } }, (answer) => {
        const parts = [];
        answer.on("data", (part) => parts.push(part)).on("error", reject).on("end", () => {
          clearTimeout(timer);
          if (!answer.complete) return reject(new Error("the answer was cut off"));
          const said = Buffer.concat(parts).toString();
          let body = null;
          try { body = said ? JSON.parse(said) : null; } catch (error) { if (answer.statusCode < 300) return reject(error); }
          resolve({ status: answer.statusCode, after: 1000 * answer.headers["retry-after"] || 0, body });
        });
      });
      const timer = setTimeout(() => request.destroy(new Error("no answer in time")), timeout);
      request.on("error", (error) => (clearTimeout(timer), reject(error)));
      request.end(text);
    });
  }

  // The same bytes again until there is an answer: what has no answer, or one that is none (429, 5xx), was maybe done.
  async text(method, path, text, o = {}) {
    const deadline = clock() + (o.patience ?? this.patience);
    for (let wait = 20; ; wait = Math.min(2 * wait, 5000)) {
      let answer, problem;
      try { answer = await (o.once ?? this.once).call(this, method, path, text, o); } catch (error) { problem = error; }
      if (o.signal?.aborted) throw problem ?? new Error("aborted");
      const unsure = !answer || answer.status === 429 || answer.status >= 500 || answer.body?.code === "IN_FLIGHT";
      if (answer && answer.status < 400) return answer.body;
      const pause = Math.max(answer?.after ?? 0, wait * (0.5 + Math.random() / 2));
      if (!unsure || answer?.body?.code === "OUTCOME_UNKNOWN" || clock() + pause > (o.until?.() ?? deadline))
        throw answer ? new HapaxError(answer.status, answer.body) : problem;
      await sleep(pause);
    }
  }
  call(method, path, body, o = {}) { // what changes something carries a key, so that it can be sent again
    const headers = method === "GET" ? {} : { "Idempotency-Key": o.idempotencyKey ?? randomUUID() };
    return this.text(method, path, method === "GET" ? undefined : JSON.stringify(body ?? {}), { ...o, headers });
  }
}

// What the API has, by its name here: a * is an argument; after those comes one more, the query of a GET, the body of all others.
const run = "workflow-runs/*", job = "jobs/*";
const routes = {
  show: `GET ${run}`, list: "GET workflow-runs", cancel: `POST ${run}/cancel`, retry: `POST ${run}/retry`, pause: `POST ${run}/pause`,
  resume: `POST ${run}/resume`, resolve: `POST ${run}/steps/*/resolve`, schedule: "PUT schedules/*",
  batches: { show: "GET batches/*", items: "GET batches/*/items", cancel: "POST batches/*/cancel", accept: "POST batches/*/items/*/accept" },
  entities: { create: "POST entities/*", show: "GET entities/*/*", list: "GET entities/*", fire: "POST entities/*/*/steps/*" },
  jobs: { list: "GET jobs", claim: "POST jobs/claim", heartbeat: `POST ${job}/heartbeat`, complete: `POST ${job}/complete`, fail: `POST ${job}/fail`,
    redrive: `POST ${job}/redrive` },
};
const over = new Set(["COMPLETED", "FAILED", "CANCELLED"]);

export function connect(options) {
  const api = new Api(options), call = (...all) => api.call(...all);
  const bind = (route) => {
    if (typeof route === "object") return Object.fromEntries(Object.entries(route).map(([name, inner]) => [name, bind(inner)]));
    const [method, path] = route.split(" ");
    return (...args) => {
      const at = path.replace(/\*/g, () => encode(args.shift())), given = Object.entries(args[0] ?? {}).filter(([, v]) => v != null);
      return method === "GET" ? call(method, given.length ? `${at}?${new URLSearchParams(given)}` : at) : call(method, at, ...args);
    };
  };
  const client = { ...bind(routes), call, close: () => api.agent.destroy() }, { batches, jobs } = client;
  const wait = (show) => async (id, { timeout } = {}) => {
    for (const until = clock() + (timeout == null ? Infinity : duration(timeout)); ; ) {
      const it = await show(id, { wait: `${Math.max(1, Math.floor(Math.min(20000, until - clock())))}ms` });
      if (over.has(it.status) || clock() >= until) return it;
    }
  };
  client.wait = wait(client.show);
  batches.wait = wait(batches.show);
  client.start = async (fn, input = {}, { key = randomUUID(), signal } = {}) => {
    const event = signal && { signal: { id: randomUUID(), ...signal } };
    const said = await call("POST", "workflow-runs", { definitionId: fn.name ?? fn, input, idempotencyKey: key, ...event });
    return { ...said.run, created: said.created };
  };
  client.result = async (id, o) => { // the output, or an error
    const it = await client.wait(id, o), { status, error } = it;
    if (status === "COMPLETED") return it.output;
    throw Object.assign(new Error(`${id} is ${status}${error ? ": " + (error.message ?? JSON.stringify(error)) : ""}`), { run: it });
  };
  client.signal = (id, event, data, o = {}) => call("POST", `workflow-runs/${encode(id)}/events/${encode(event)}`, { id: o.id ?? randomUUID(), data });
  client.approve = (id, step, o) => call("POST", `workflow-runs/${encode(id)}/approvals/${encode(step)}`, { decision: "approve", ...o });
  batches.start = ({ key = randomUUID(), ...spec }) => call("POST", "batches", { idempotencyKey: key, ...spec });
  jobs.push = (queue, payload, { key = randomUUID(), ...o } = {}) => call("POST", "jobs", { queue, payload, key, ...o });
  return client;
}
