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

const over = new Set(["COMPLETED", "FAILED", "CANCELLED"]);
const query = (o) => { const q = new URLSearchParams(Object.entries(o ?? {}).filter(([, v]) => v != null)).toString(); return q && "?" + q; };

export function connect(options) {
  const api = new Api(options), get = (path, q) => api.call("GET", path + query(q)), post = (path, body, o) => api.call("POST", path, body, o);
  const run = (id, verb = "") => `workflow-runs/${encode(id)}${verb}`, verb = (name) => (id, body) => post(run(id, "/" + name), body);
  const wait = (path, timeout) => (async (until) => {
    for (;;) {
      const left = Math.min(20000, until - clock()), it = await api.call("GET", `${path}?wait=${Math.max(1, Math.floor(left))}ms`);
      if (over.has(it.status) || clock() >= until) return it;
    }
  })(clock() + (timeout == null ? Infinity : duration(timeout)));
  const entity = (workflow, id) => `entities/${encode(workflow)}/${encode(id)}`;
  return {
    call: (method, path, body, o) => api.call(method, path, body, o), close: () => api.agent.destroy(),
    async start(fn, input = {}, { key = randomUUID(), signal } = {}) {
      const said = await post("workflow-runs", { definitionId: fn.name ?? fn, input, idempotencyKey: key, ...(signal && { signal: { id: randomUUID(), ...signal } }) });
      return { ...said.run, created: said.created };
    },
    show: (id) => get(run(id)), list: (q) => get("workflow-runs", q),
    wait: (id, { timeout } = {}) => wait(run(id), timeout),
    async result(id, o) { // the output, or an error
      const it = await wait(run(id), o?.timeout);
      if (it.status === "COMPLETED") return it.output;
      throw Object.assign(new Error(`${id} is ${it.status}${it.error ? ": " + (it.error.message ?? JSON.stringify(it.error)) : ""}`), { run: it });
    },
    signal: (id, event, data, o = {}) => post(run(id, "/events/" + encode(event)), { id: o.id ?? randomUUID(), ...(data !== undefined && { data }) }),
    approve: (id, step, o = {}) => post(run(id, "/approvals/" + encode(step)), { decision: "approve", ...o }),
    resolve: (id, step, o) => post(run(id, `/steps/${encode(step)}/resolve`), o),
    cancel: verb("cancel"), retry: verb("retry"), pause: verb("pause"), resume: verb("resume"),
    schedule: (name, spec) => api.call("PUT", "schedules/" + encode(name), spec),
    batches: {
      start: ({ key = randomUUID(), ...spec }) => post("batches", { idempotencyKey: key, ...spec }), show: (id) => get("batches/" + encode(id)),
      wait: (id, o) => wait("batches/" + encode(id), o?.timeout), items: (id, q) => get(`batches/${encode(id)}/items`, q),
      cancel: (id) => post(`batches/${encode(id)}/cancel`), accept: (id, n, o) => post(`batches/${encode(id)}/items/${n}/accept`, o),
    },
    entities: {
      create: (workflow, o) => post("entities/" + encode(workflow), o), show: (workflow, id) => get(entity(workflow, id)),
      list: (workflow, q) => get("entities/" + encode(workflow), q), fire: (workflow, id, step, o) => post(`${entity(workflow, id)}/steps/${encode(step)}`, o),
    },
    jobs: {
      push: (queue, payload, { key = randomUUID(), ...o } = {}) => post("jobs", { queue, payload, key, ...o }), list: (q) => get("jobs", q),
      claim: (o) => api.call("POST", "jobs/claim", o), redrive: (id) => post(`jobs/${encode(id)}/redrive`),
      heartbeat: (id, o) => post(`jobs/${encode(id)}/heartbeat`, o), complete: (id, o) => post(`jobs/${encode(id)}/complete`, o), fail: (id, o) => post(`jobs/${encode(id)}/fail`, o),
    },
  };
}
