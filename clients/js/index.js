// Hapax for JavaScript: functions whose steps are journalled, and the client of the API. Node 18 and later, no
// dependencies.
import os from "node:os";
import { randomUUID } from "node:crypto";
import { Api, HapaxError, clock, connect, duration, sleep } from "./client.js";
import { EntryError, Final, NotDone, Run } from "./run.js";

function define(name, options, code) {
  if (typeof options === "function") [options, code] = [{}, options];
  if (typeof name !== "string" || typeof code !== "function") throw new TypeError("a function has a name and code");
  return { name, version: String(options.version ?? "1"), code };
}

// Where many runs are under way, those of their calls that are there at the same moment go in one request, two of which
// are out at a time. What has no answer so goes alone when it is sent again: one that hangs does not hold up the rest.
const FEW = 8, LONG = 8000, TOGETHER = 100;
function together({ api, leaseMs }, active) {
  const queue = [];
  let out = 0;
  async function send() {
    while (queue.length) {
      const list = queue.splice(0, TOGETHER), calls = list.map(({ id, text }) => `{"run":"${id}","call":${text}}`);
      const asked = api.once("POST", "functions/journal", `{"calls":[${calls}]}`, { timeout: Math.ceil(leaseMs / 6) });
      const { body } = await asked.catch(() => ({}));
      list.forEach(({ resolve }, i) => resolve(body?.answers?.[i] ?? { status: 503 }));
    }
    out--;
  }
  return (method, path, text, how) => {
    const { again } = how;
    how.again = true;
    if (again || active.size < FEW || text.length > LONG) return api.once(method, path, text, how);
    if (out < 2 && ++out) setImmediate(send);
    return new Promise((resolve) => queue.push({ id: path.split("/")[2], text, resolve }));
  };
}

// Takes turns until stop() is called, or the signal says so; then what is under way is ended, or given back.
function work(o) {
  const { api = new Api(o), concurrency = 16, keep = 500, fakes, log = (...words) => console.error(...words) } = o;
  const fns = new Map(o.functions.map((f) => [`${f.name} ${f.version}`, f])), active = new Map(), warm = new Map();
  const name = o.worker ?? `${os.hostname()}-${process.pid}-${randomUUID().slice(0, 8)}`, end = new AbortController();
  const leaseMs = duration(o.lease ?? "30s"), worker = { api, name, log, fakes, leaseMs, stopping: false };
  worker.once = together(worker, active);
  let freed = () => {};

  async function journal(t, known) { // what it does not know, in pages where it is long
    let { journal, more } = known || !t.from ? t : { journal: [], more: true };
    for (let page; more; { more } = page) {
      const after = journal.at(-1)?.seq ?? 0;
      page = await api.text("GET", `functions/runs/${t.run}/journal?fence=${t.fence}&after=${after}`);
      journal = journal.concat(page.journal);
    }
    return journal;
  }
  async function take(t, sent) {
    const fn = fns.get(`${t.function} ${t.version}`), before = t.from && active.get(t.run);
    if (before) await Promise.race([before.gone, sleep(1000)]); // its turn is over, and it is about to hear so
    const kept = warm.get(t.run), known = t.from && kept?.seq >= t.from && kept.fn === fn;
    const run = known ? kept : new Run(worker, t, fn);
    warm.delete(t.run);
    active.set(t.run, run);
    Object.assign(run, { sent, leaseEnd: sent + leaseMs, fence: t.fence });
    const turn = async () => run.turn(t, await journal(t, known));
    run.gone = turn().catch((error) => log(`${t.run}: ${error.stack}`)).then((suspended) => {
      const ours = active.get(t.run) === run && active.delete(t.run);
      if (ours && suspended) warm.set(t.run, run);
      if (warm.size > keep) warm.delete(warm.keys().next().value);
      freed();
    });
  }
  let failed = 0;
  const functions = [...fns.values()].map(({ name, version }) => ({ name, version })), where = api.base.origin;
  const asks = `hapax: asks ${where} for turns of ${[...fns.keys()].join(", ")}`;
  async function claim(max) {
    const much = [...active].filter(([, run]) => run.seq > 20); // of the others it is less to be told all
    const known = [...warm, ...much].map(([run, { seq }]) => ({ run, seq }));
    const sent = clock(), waitMs = Math.min(20000, Math.ceil(leaseMs / 2));
    const ask = JSON.stringify({ worker: name, functions, max, waitMs, leaseMs, warm: known });
    const how = { timeout: waitMs + api.timeout, signal: end.signal }, lost = (error) => ({ status: 503, error });
    const { status, body, error } = await api.once("POST", "functions/claim", ask, how).catch(lost);
    if (status < 300) {
      if (failed > 2) log(asks);
      failed = 0;
      for (const t of body.turns) take(t, sent);
    } else if (status < 500 && status !== 429) {
      throw new HapaxError(status, body);
    } else {
      const why = error?.code || error?.message || body?.detail || status;
      if (++failed === 3) log(`hapax: ${where} takes no call, and is asked on: ${why}`);
      if (!worker.stopping) await sleep(100 + 400 * Math.random());
    }
  }
  async function poll() {
    const room = () => new Promise((go) => (freed = go));
    log(asks);
    try {
      while (!worker.stopping)
        if (active.size < concurrency) await claim(Math.min(100, concurrency - active.size));
        else await room();
      active.forEach((run) => run.wake());
      while (active.size) await room();
    } finally { api.agent.destroy(); }
  }
  const stop = () => { worker.stopping = true; end.abort(); freed(); return under; };
  const under = poll();
  o.signal?.addEventListener("abort", stop);
  if (o.signal?.aborted) stop();
  return Object.assign(under, { stop, name });
}

const test = async (...all) => (await import("./test.js")).test(...all);
export { define as function, work, connect, test, duration, Final, NotDone, HapaxError, EntryError };
export default { function: define, work, connect, test, duration, Final, NotDone, HapaxError, EntryError };
