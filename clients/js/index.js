// Hapax for JavaScript: functions whose steps are journalled, and the client of the API. Node 18 and later, no dependencies.
import os from "node:os";
import { randomUUID } from "node:crypto";
import { Api, HapaxError, clock, connect, duration, sleep } from "./client.js";
import { EntryError, Final, NotDone, Run } from "./run.js";

function define(name, options, code) {
  if (typeof options === "function") [options, code] = [{}, options];
  if (typeof name !== "string" || typeof code !== "function") throw new TypeError("a function has a name and code");
  return { name, version: String(options.version ?? "1"), code };
}

// Takes turns until stop() is called, or the signal says so; then what is under way is ended, or given back.
function work(o) {
  const fns = new Map(o.functions.map((f) => [f.name + " " + f.version, f])), active = new Map(), warm = new Map(), end = new AbortController();
  const leaseMs = duration(o.lease ?? "30s"), worker = { leaseMs, api: o.api ?? new Api(o), fakes: o.fakes, callMs: Math.ceil(leaseMs / 3), stopping: false,
    name: o.worker ?? `${os.hostname()}-${process.pid}-${randomUUID().slice(0, 8)}`, log: o.log ?? ((...words) => console.error(...words)) };
  const { api } = worker, { concurrency = 16, keep = 500 } = o, waitMs = Math.min(20000, Math.ceil(leaseMs / 2));
  let freed = () => {};

  // Where many runs are under way their calls go together: those that are there at the same moment, in one request, two of which are out at a time.
  // Once: what has no answer so goes alone when it is sent again, and so do all others for the time of a lease. One that hangs does not hold up the rest.
  const queue = [], few = 8, long = 8000;
  let out = 0, apart = 0;
  const alone = ({ method, path, text, how, resolve, reject }) => api.once(method, path, text, how).then(resolve, reject);
  worker.once = (method, path, text, how) => {
    const { again } = how;
    how.again = true;
    return again || active.size < few || text.length > long || clock() < apart ? api.once(method, path, text, how)
      : new Promise((resolve, reject) => { if (queue.push({ method, path, text, how, resolve, reject }) === 1) setImmediate(flush); });
  };
  function together(list) {
    const calls = list.map(({ path, text }) => `{"run":"${path.split("/")[2]}","call":${text}}`), part = () => (apart = clock() + leaseMs);
    return api.once("POST", "functions/journal", `{"calls":[${calls}]}`, { timeout: Math.ceil(worker.callMs / 2) }).then((all) => {
      const { status } = all, answers = status < 300 ? all.body?.answers ?? [] : [], later = status === 429 || status >= 500;
      if (answers.length < list.length) part(); // 404: an engine that does not know it yet
      list.forEach((c, i) => (answers[i] ? c.resolve(answers[i]) : later ? c.resolve(all) : alone(c)));
    }, (error) => { part(); list.forEach((c) => c.reject(error)); });
  }
  function flush() {
    if (clock() < apart) return queue.splice(0).forEach(alone);
    if (!queue.length || out === 2) return;
    const list = queue.splice(0, 100), slow = setTimeout(() => next(), worker.callMs / 4);
    let next = () => { clearTimeout(slow); next = () => {}; out--; flush(); };
    out++;
    (list.length > 1 ? together(list) : alone(list[0])).finally(() => next());
    flush();
  }

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
    Object.assign(run, { sent, leaseEnd: sent + leaseMs, fence: t.fence, gone: new Promise((done) => (run.leave = done)) });
    try {
      for (let page; more; { more } = page) {
        page = await api.text("GET", `functions/runs/${t.run}/journal?fence=${t.fence}&after=${journal.at(-1)?.seq ?? 0}`);
        journal = journal.concat(page.journal);
      }
      const news = journal.filter(({ seq }) => seq > run.seq); // of what was before that it has heard since it asked for turns
      if ((await run.turn(t, news, sent)) && active.get(t.run) === run) warm.set(t.run, run);
      if (warm.size > keep) warm.delete(warm.keys().next().value);
    } catch (error) { worker.log(`${t.run}: ${error.stack}`); } finally { if (active.get(t.run) === run) active.delete(t.run); run.leave(); freed(); }
  }
  const worth = ([, run]) => run.waits || run.seq > 20; // to be named: of one that may suspend, or else has much to be told again
  async function poll() {
    const beat = setInterval(() => active.forEach((run) => run.heartbeat()), Math.max(20, leaseMs / 12)).unref();
    let told = "", failed = 0;
    const tell = (words) => { if (words !== told) worker.log(`hapax: ${(told = words)}`); };
    const asks = `asks ${api.base.origin} for turns of ${[...fns.values()].map(({ name, version }) => `${name} ${version}`).join(", ")}`;
    tell(asks);
    try {
      while (!worker.stopping) {
        const max = Math.min(100, concurrency - active.size), sent = clock();
        if (max <= 0) { await new Promise((done) => (freed = done)); continue; }
        const functions = [...fns.values()].map(({ name, version }) => ({ name, version }));
        const ask = { worker: worker.name, functions, max, waitMs, leaseMs, warm: [...warm, ...active].filter(worth).map(([run, { seq }]) => ({ run, seq })) };
        const claim = api.once("POST", "functions/claim", JSON.stringify(ask), { timeout: waitMs + api.timeout, signal: end.signal });
        const answer = await claim.catch((error) => ({ status: 503, error }));
        if (answer.status < 300) failed = 0, tell(asks);
        else if (++failed === 3) tell(`${api.base.origin} takes no call, and is asked on: ${answer.error?.code || answer.error?.message || answer.body?.detail || answer.status}`);
        if (answer.status < 300) for (const t of answer.body.turns) take(t, sent);
        else if (answer.status < 500 && answer.status !== 429) throw new HapaxError(answer.status, answer.body);
        else if (!worker.stopping) await sleep(100 + 400 * Math.random());
      }
      active.forEach((run) => run.wake());
      while (active.size) await new Promise((done) => (freed = done));
    } finally { clearInterval(beat); api.agent.destroy(); }
  }
  const stop = () => { worker.stopping = true; end.abort(); freed(); return under; };
  const under = poll();
  o.signal?.addEventListener("abort", stop);
  if (o.signal?.aborted) stop();
  return Object.assign(under, { stop, name: worker.name });
}

const test = async (...all) => (await import("./test.js")).test(...all);
export { define as function, work, connect, test, duration, Final, NotDone, HapaxError, EntryError };
export default { function: define, work, connect, test, duration, Final, NotDone, HapaxError, EntryError };
