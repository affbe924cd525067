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

// Where many runs are under way their calls go together: those that are there at the same moment, in one request, two
// of which are out at a time. Once: what has no answer so goes alone when it is sent again, and so do all others for
// the time of a lease. One that hangs does not hold up the rest.
const FEW = 8, LONG = 8000, TOGETHER = 100;
function together({ api, callMs, leaseMs }, active) {
  const queue = [], alone = ({ all, resolve, reject }) => api.once(...all).then(resolve, reject);
  let out = 0, apart = 0;
  const part = () => (apart = clock() + leaseMs);
  function send(list) {
    const calls = list.map(({ all: [, path, text] }) => `{"run":"${path.split("/")[2]}","call":${text}}`);
    const how = { timeout: Math.ceil(callMs / 2) };
    return api.once("POST", "functions/journal", `{"calls":[${calls}]}`, how).then((said) => {
      const { status } = said, later = status === 429 || status >= 500;
      const answers = (status < 300 && said.body?.answers) || [];
      if (answers.length < list.length) part(); // 404: an engine that does not know it yet
      list.forEach((c, i) => (answers[i] ? c.resolve(answers[i]) : later ? c.resolve(said) : alone(c)));
    }, (error) => { part(); list.forEach((c) => c.reject(error)); });
  }
  function flush() {
    if (clock() < apart) return queue.splice(0).forEach(alone);
    if (!queue.length || out === 2) return;
    const list = queue.splice(0, TOGETHER), slow = setTimeout(() => next(), callMs / 4);
    let next = () => { clearTimeout(slow); next = () => {}; out--; flush(); };
    out++;
    (list.length > 1 ? send(list) : alone(list[0])).finally(() => next());
    flush();
  }
  return (...all) => {
    const [, , text, how] = all, { again } = how;
    how.again = true;
    if (again || active.size < FEW || text.length > LONG || clock() < apart) return api.once(...all);
    return new Promise((resolve, reject) => { if (queue.push({ all, resolve, reject }) === 1) setImmediate(flush); });
  };
}

// Takes turns until stop() is called, or the signal says so; then what is under way is ended, or given back.
function work(o) {
  const fns = new Map(o.functions.map((f) => [f.name + " " + f.version, f])), active = new Map(), warm = new Map();
  const { api = new Api(o), concurrency = 16, keep = 500, fakes, log = (...words) => console.error(...words) } = o;
  const name = o.worker ?? `${os.hostname()}-${process.pid}-${randomUUID().slice(0, 8)}`, end = new AbortController();
  const leaseMs = duration(o.lease ?? "30s"), waitMs = Math.min(20000, Math.ceil(leaseMs / 2));
  const worker = { api, name, log, fakes, leaseMs, callMs: Math.ceil(leaseMs / 3), stopping: false };
  worker.once = together(worker, active);
  let freed = () => {};

  async function take(t, sent) {
    const fn = fns.get(t.function + " " + t.version), before = t.from && active.get(t.run);
    if (before) await Promise.race([before.gone, sleep(1000)]); // its turn is over, and it is about to hear so
    let run = warm.get(t.run), { journal, more } = t;
    warm.delete(t.run);
    if (!run || !t.from || t.from > run.seq || run.fn !== fn) {
      if (t.from) [journal, more] = [[], true]; // it was here, and is not any more
      run = new Run(worker, t, fn);
    }
    active.set(t.run, run);
    Object.assign(run, { sent, leaseEnd: sent + leaseMs, fence: t.fence, gone: new Promise((go) => (run.leave = go)) });
    try {
      for (let page; more; { more } = page) {
        const after = journal.at(-1)?.seq ?? 0;
        page = await api.text("GET", `functions/runs/${t.run}/journal?fence=${t.fence}&after=${after}`);
        journal = journal.concat(page.journal);
      }
      const news = journal.filter(({ seq }) => seq > run.seq); // of what it has not heard since it asked for turns
      if ((await run.turn(t, news)) && active.get(t.run) === run) warm.set(t.run, run);
      if (warm.size > keep) warm.delete(warm.keys().next().value);
    } catch (error) {
      worker.log(`${t.run}: ${error.stack}`);
    } finally {
      if (active.get(t.run) === run) active.delete(t.run);
      run.leave();
      freed();
    }
  }
  const worth = ([, run]) => run.waits || run.seq > 20; // to be named: it may suspend, or has much to be told again
  let told = "", failed = 0;
  const tell = (words) => { if (words !== told) worker.log(`hapax: ${(told = words)}`); };
  const functions = [...fns.values()].map(({ name, version }) => ({ name, version })), where = api.base.origin;
  const asks = `asks ${where} for turns of ${functions.map((f) => `${f.name} ${f.version}`).join(", ")}`;
  async function claim(max) {
    const named = [...warm, ...active].filter(worth).map(([run, { seq }]) => ({ run, seq })), sent = clock();
    const ask = JSON.stringify({ worker: name, functions, max, waitMs, leaseMs, warm: named });
    const how = { timeout: waitMs + api.timeout, signal: end.signal };
    const lost = (error) => ({ status: 503, error });
    const { status, body, error } = await api.once("POST", "functions/claim", ask, how).catch(lost);
    if (status < 300) {
      failed = 0;
      tell(asks);
      for (const t of body.turns) take(t, sent);
    } else if (status < 500 && status !== 429) {
      throw new HapaxError(status, body);
    } else {
      const why = error?.code || error?.message || body?.detail || status;
      if (++failed === 3) tell(`${where} takes no call, and is asked on: ${why}`);
      if (!worker.stopping) await sleep(100 + 400 * Math.random());
    }
  }
  async function poll() {
    const beat = setInterval(() => active.forEach((run) => run.heartbeat()), Math.max(20, leaseMs / 12)).unref();
    const room = () => new Promise((go) => (freed = go));
    tell(asks);
    try {
      while (!worker.stopping)
        if (active.size < concurrency) await claim(Math.min(100, concurrency - active.size));
        else await room();
      active.forEach((run) => run.wake());
      while (active.size) await room();
    } finally {
      clearInterval(beat);
      api.agent.destroy();
    }
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
