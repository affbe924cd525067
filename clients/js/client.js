// The client of the API: over HTTP, with keys made for what has none, so that each call can be sent again until it is
// answered.
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
  if (m) return m[1] * units[m[2]];
  if (Number.isSafeInteger(d) && d > 0) return d;
  throw new TypeError(`${JSON.stringify(d)} is no duration, such as "30s"`);
}
const hex = (c) => "%" + c.charCodeAt(0).toString(16).toUpperCase();
export const encode = (s) => encodeURIComponent(s).replace(/[!'()*]/g, hex);
export const sleep = (ms) => new Promise((done) => setTimeout(done, ms));
export const clock = () => performance.now(); // monotonic

export class Api {
  constructor({ server, key, workspace, requester, timeout = "30s", patience = "2m" } = {}) {
    this.base = new URL((server || process.env.HAPAX_SERVER || "http://127.0.0.1:7411").replace(/\/*$/, "/api/v1/"));
    const secret = key || process.env.HAPAX_KEY;
    this.headers = { "Content-Type": "application/json", ...(secret && { Authorization: "Bearer " + secret }),
      ...(workspace && { "Hapax-Workspace": workspace }), ...(requester && { "Hapax-Requester": requester }) };
    this.timeout = duration(timeout); // of one try
    this.patience = duration(patience); // of a call with all its tries
    this.http = this.base.protocol === "https:" ? https : http;
    this.agent = new this.http.Agent({ keepAlive: true });
  }

  once(method, path, text = "", { headers, timeout = this.timeout, signal } = {}) {
    return new Promise((resolve, reject) => {
      const all = { ...this.headers, ...headers, "Content-Length": Buffer.byteLength(text) };
      const how = { method, headers: all, agent: this.agent, timeout, signal };
      const request = this.http.request(new URL(path, this.base), how, (answer) => {
        let said = "", body = null;
        const { statusCode: status } = answer, after = 1000 * answer.headers["retry-after"] || 0;
        answer.setEncoding("utf8").on("data", (part) => (said += part)).on("error", reject).on("end", () => {
          try { body = said && JSON.parse(said); } catch (error) { if (status < 300) return reject(error); }
          resolve({ status, after, body });
        });
      });
      request.on("timeout", () => request.destroy(new Error("no answer in time"))).on("error", reject).end(text);
    });
  }

  // The same bytes again until there is an answer: what has no answer, or one that is none (429, 5xx), was maybe done.
  async text(method, path, text, o = {}) {
    const deadline = clock() + this.patience, once = o.once ?? this.once.bind(this);
    for (let wait = 20; ; wait = Math.min(2 * wait, 5000)) {
      const nothing = (error) => ({ status: 503, error });
      const { status, body, after = 0, error } = await once(method, path, text, o).catch(nothing);
      if (status < 400) return body;
      const unsure = status === 429 || status >= 500 || body?.code === "IN_FLIGHT";
      const pause = Math.max(after, wait * (0.5 + Math.random() / 2));
      if (!unsure || body?.code === "OUTCOME_UNKNOWN" || clock() + pause > (o.until?.() ?? deadline))
        throw error ?? new HapaxError(status, body);
      await sleep(pause);
    }
  }
  call(method, path, body, o = {}) { // what changes something carries a key, so that it can be sent again
    const headers = method === "GET" ? {} : { "Idempotency-Key": o.idempotencyKey ?? randomUUID() };
    return this.text(method, path, method === "GET" ? undefined : JSON.stringify(body ?? {}), { ...o, headers });
  }
}

// What the API has, by its name here: a * is an argument; after those comes one more, the query of a GET, the body of
// all others.
const run = "workflow-runs/*", batch = "batches/*", entity = "entities/*/*", job = "jobs/*";
const routes = {
  show: `GET ${run}`, list: "GET workflow-runs", schedule: "PUT schedules/*", resolve: `POST ${run}/steps/*/resolve`,
  cancel: `POST ${run}/cancel`, retry: `POST ${run}/retry`, pause: `POST ${run}/pause`, resume: `POST ${run}/resume`,
  batches: {
    show: `GET ${batch}`, items: `GET ${batch}/items`, cancel: `POST ${batch}/cancel`,
    accept: `POST ${batch}/items/*/accept`,
  },
  entities: {
    create: "POST entities/*", show: `GET ${entity}`, list: "GET entities/*", fire: `POST ${entity}/steps/*`,
  },
  jobs: {
    list: "GET jobs", claim: "POST jobs/claim", heartbeat: `POST ${job}/heartbeat`, complete: `POST ${job}/complete`,
    fail: `POST ${job}/fail`, redrive: `POST ${job}/redrive`,
  },
};
const over = new Set(["COMPLETED", "FAILED", "CANCELLED"]);

export function connect(options) {
  const api = new Api(options), call = (...all) => api.call(...all), newKey = randomUUID;
  const method = (route) => (...args) => {
    const [verb, pattern] = route.split(" "), path = pattern.replace(/\*/g, () => encode(args.shift()));
    if (verb !== "GET") return call(verb, path, ...args);
    const query = new URLSearchParams(Object.entries(args[0] ?? {}).filter(([, v]) => v != null)).toString();
    return call(verb, query ? `${path}?${query}` : path);
  };
  const bind = (table) => Object.fromEntries(
    Object.entries(table).map(([name, route]) => [name, typeof route === "string" ? method(route) : bind(route)]));
  const client = { ...bind(routes), call, close: () => api.agent.destroy() }, { batches, jobs } = client;
  const about = (id, ...more) => ["workflow-runs", id, ...more].map(encode).join("/");
  const wait = (show) => async (id, { timeout } = {}) => {
    for (const until = clock() + (timeout == null ? Infinity : duration(timeout)); ; ) {
      const it = await show(id, { wait: `${Math.max(1, Math.floor(Math.min(20000, until - clock())))}ms` });
      if (over.has(it.status) || clock() >= until) return it;
    }
  };
  client.wait = wait(client.show);
  batches.wait = wait(batches.show);
  client.start = async (fn, input = {}, { key = newKey(), signal } = {}) => {
    const event = signal && { signal: { id: newKey(), ...signal } };
    const ask = { definitionId: fn.name ?? fn, input, idempotencyKey: key, ...event };
    const said = await call("POST", "workflow-runs", ask);
    return { ...said.run, created: said.created };
  };
  client.result = async (id, o) => { // the output, or an error
    const it = await client.wait(id, o), { status, output, error } = it;
    if (status === "COMPLETED") return output;
    const why = error ? ": " + (error.message ?? JSON.stringify(error)) : "";
    throw Object.assign(new Error(`${id} is ${status}${why}`), { run: it });
  };
  client.signal = (id, event, data, o) => call("POST", about(id, "events", event), { id: o?.id ?? newKey(), data });
  client.approve = (id, step, o) => call("POST", about(id, "approvals", step), { decision: "approve", ...o });
  batches.start = ({ key = newKey(), ...spec }) => call("POST", "batches", { idempotencyKey: key, ...spec });
  jobs.push = (queue, payload, { key = newKey(), ...o } = {}) => call("POST", "jobs", { queue, payload, key, ...o });
  return client;
}
