// One run of a function, in the memory of a worker: the code, and the journal that it is played against.
//
// What the code asks for (a step, a sleep, an event …) is an entry with a name; what has ended is handed to it in the
// order of the journal's sequence, one by one, and each time the code goes on until it asks for nothing more. So it
// goes on the same way live as in a replay. Nothing is executed before the entries ahead of it have been answered.
// See docs/functions.md for what is promised.
import { randomUUID } from "node:crypto";
import { clock, duration, encode } from "./client.js";

export class Final extends Error {} // a step that throws it is not tried again
export class NotDone extends Error {} // a claimed step that throws it has certainly done nothing: it is tried again
export class EntryError extends Error { // what an entry failed of: TIMEOUT, REJECTED, CHILD_FAILED, a step's own error
  constructor({ kind, name, n, error }) {
    super(error?.message ?? `${kind} "${name}" has failed`);
    Object.assign(this, { name: "EntryError", code: error?.code, error, step: n ? `${name}#${n}` : name });
  }
}

// Kinds: those that are executed here; those that have ended as soon as they are asked for; those about another entry.
const works = new Set(["step", "undo"]), instant = new Set(["value", "attribute"]);
const marks = new Set(["compensate", "drop"]);
const CALL_MAX = 1000, WORDS_MAX = 10000; // entries of one call; what is kept of an error
const RELEASED = { state: "released" };
const LOST = new Set(["STALE_FENCE", "SEQ_CONFLICT", "NOT_FOUND"]); // it is not ours any more
const ANEW = new Set(["CANCELLED", "WRONG_STATUS"]); // the next turn says what is to be done
const tick = () => new Promise(setImmediate); // after all that the code does by itself
const json = (value) => (value === undefined ? null : JSON.parse(JSON.stringify(value) ?? "null"));
const failed = (error, more) => {
  const code = error?.code ? String(error.code) : undefined, message = String(error?.message ?? error);
  return { state: "failed", error: { code, message: message.slice(0, WORDS_MAX) }, ...more };
};
const done = (output) => ({ state: "done", output: json(output) });

const idOf = (name, n) => `${n} ${name}`;
const brief = ({ kind, name, n }) => ({ kind, name, n });
const ended = (e) => e.state === "done" || e.state === "dropped" || (e.state === "failed" && e.retryAfterMs == null);
const isUnborn = (e) => e.kind === "step" && e.state === "new";
const happened = (e) => e.result || (e.kind === "compensate" && (e.about.sent || e.about.result)); // and is to be known

// What the wire says of it, and here: asked (by the code), over (handed to the code, or nobody waits for it), sent (the
// engine knows it), busy (being executed), result (of that, not sent yet), due. All of them have all members, so that
// they are of one shape for the machine.
class Entry {
  state = "new"; output; error; attempt = 0; retryAfterMs; onUnknown; key; i; seq;
  asked = false; over = false; sent = false; busy = false;
  result; due; fields; work; undo; view; abort; promise; resolve; reject;
  constructor(kind, name, n, about) {
    Object.assign(this, { kind, name, n, about, id: idOf(name, n) });
  }
  update(change) {
    this.retryAfterMs = undefined;
    Object.assign(this, change);
    if (this.retryAfterMs != null) this.due = clock() + this.retryAfterMs;
    return this;
  }
}
const entry = Symbol("of a promise: what it is about");

export class Run {
  constructor(worker, { run, input }, fn) {
    Object.assign(this, { worker, fn, id: run, input, seq: 0, running: 0, at: 0, places: [], outbox: [],
      news: [], entries: new Map(), undos: new Map(), uses: new Map(), marked: new Set(), pending: new Set(),
      groups: new Set() });
  }
  wake() { this.woken?.(); }
  async nap(ms) { // or until something happens: a step has ended, the code has asked
    let timer;
    await new Promise((go) => { this.woken = go; timer = setTimeout(go, ms); });
    clearTimeout(timer);
  }
  die(why) { // not ours any more: the code goes on no further, and what it is doing is told to stop
    this.dead ??= why;
    for (const e of [...this.pending, ...this.undos.values()]) e.abort?.abort();
    this.wake();
  }
  lapsed() { return clock() > this.leaseEnd; }

  // --- what the code asks for, in order
  ask(kind, name, fields, more) {
    if (typeof name !== "string" || !name) throw new TypeError(`a ${kind} needs a name`);
    const n = this.uses.get(name) ?? 0, id = idOf(name, n), next = this.cancelled ? null : this.places[this.at];
    let e = this.entries.get(id);
    if (n && !this.entries.get(idOf(name, n - 1)).over) {
      const words = `"${name}" is under way already: what runs at the same time needs names of its own`;
      return Promise.reject(new Final(words));
    }
    if (next && (next !== e || e.kind !== kind)) this.diverge(next, { kind, name, n });
    // A cancelled run stops at what is not in its journal.
    if (this.dead || this.halt || (this.cancelled && e?.kind !== kind)) return new Promise(() => {});
    this.uses.set(name, n + 1);
    if (next) this.at++;
    if (!e) {
      e = new Entry(kind, name, n);
      this.entries.set(id, e);
      this.outbox.push(e);
    }
    Object.assign(e, { fields, asked: true }, more);
    if (instant.has(kind)) {
      if (e.state === "new") Object.assign(e, { state: "done", output: fields.output });
      e.over = true;
      return Promise.resolve(e.output);
    }
    e.promise = new Promise((resolve, reject) => { e.resolve = resolve; e.reject = reject; });
    e.promise[entry] = e;
    this.pending.add(e);
    if (e.work?.undo) this.compensate(e, e.work.undo);
    this.wake();
    return e.promise;
  }
  diverge(expected, found) {
    this.halt ??= { state: "diverged", expected: brief(expected), found: found ? brief(found) : { kind: "end" } };
    this.wake();
  }
  mark(kind, e) { // said once about an entry
    if (this.marked.has(kind + e.id)) return;
    this.marked.add(kind + e.id);
    this.outbox.push(new Entry(kind, e.name, e.n, e));
  }
  compensate(e, undo) {
    e.undo = undo;
    this.mark("compensate", e);
  }
  drop(e) { // a race's loser; what is being executed, or in doubt, comes to its end, and nobody waits for it
    if (!e || e.over) return;
    e.over = true;
    if (e.state === "unknown") return;
    this.pending.delete(e);
    e.abort?.abort();
    if (!e.busy && !ended(e) && !isUnborn(e)) this.mark("drop", e);
  }

  // --- what the engine says, handed to the code in order of seq, one by one
  hear(changes) {
    for (const c of changes) {
      const id = idOf(c.name, c.n), home = c.kind === "undo" ? this.undos : this.entries;
      if (marks.has(c.kind)) this.marked.add(c.kind + id);
      else if (!home.has(id)) home.set(id, new Entry(c.kind, c.name, c.n));
      const e = home.get(id);
      if (marks.has(c.kind) || (e.over && ended(e))) continue; // nothing new to the code
      if (!e.sent && home === this.entries) this.places.push(e);
      e.update(c).sent = true;
      if (ended(e) && e.state !== "dropped" && home === this.entries && !instant.has(e.kind)) this.news.push(e);
    }
  }
  async deliver(e) {
    // Code that waits for something of its own is given a moment; code that waits for us will not ask for this one.
    const goes = () => !(e.asked || this.done || this.halt || this.dead || this.cancelled || this.pending.size);
    for (const until = clock() + this.worker.leaseMs / 6; goes() && clock() < until; ) await this.nap(100);
    if (this.halt || this.dead || e.over) return;
    if (!e.asked) return this.cancelled ? undefined : this.diverge(e, [...this.pending][0]);
    e.over = true;
    this.pending.delete(e);
    try {
      if (e.state !== "done") throw new EntryError(e);
      e.resolve(e.view ? e.view(e) : e.output);
    } catch (error) {
      e.promise.catch(() => {}); // nobody has to look at it
      e.reject(error);
    }
  }
  // Where only this worker can end anything the order of seq is known before the answer: the code goes on at once.
  foreseen() {
    const next = this.outbox.find((e) => e.kind === "step" && e.result && ended(e) && !e.over);
    return next && [...this.pending].every((e) => e.kind === "step" && e.state !== "unknown") ? next : null;
  }

  // --- what is said to the engine
  words(e) { // as it is now: what was never begun and has ended is one entry
    if (e.about) return e.kind === "compensate" || !ended(e.about) ? brief(e) : null;
    const words = Object.assign(brief(e), e.sent ? null : e.fields);
    if (!works.has(e.kind)) return words;
    if (e.over && !e.sent && !e.busy) e.result ??= failed({ code: "DROPPED", message: "it lost its race" });
    return Object.assign(words, e.result ?? { state: "begun" });
  }
  async post(entries, end) { // repeated until it is answered; with nothing to say it is a heartbeat
    const { api, name, leaseMs, once } = this.worker, { id, fence, seq } = this, sent = clock();
    const text = JSON.stringify({ worker: name, fence, seq, entries, end, leaseMs });
    const how = { until: () => this.leaseEnd, timeout: Math.ceil(leaseMs / 3), once };
    const answer = await api.text("POST", `functions/runs/${id}/journal`, text, how);
    Object.assign(this, { seq: answer.seq, sent, leaseEnd: sent + leaseMs });
    if (answer.paused || (answer.cancelled && !this.cancelled)) this.halt ??= RELEASED; // the next turn says so
    return answer.completed;
  }
  // One call, with all that is to be said but what is held back. False: it was refused, or the run is not ours.
  async send(end, held) {
    const queue = this.outbox.filter((e) => e !== held), rest = queue.splice(CALL_MAX);
    const said = queue.map((e) => ({ e, words: this.words(e), result: e.result }));
    this.outbox = held ? [...rest, held] : rest;
    let news;
    try {
      news = await this.post(said.flatMap(({ words }) => words ?? []), end);
    } catch (error) { return this.refused(error, queue); }
    for (const { e, words, result } of said) {
      e.sent = true;
      if (e.result !== result) continue; // it has ended meanwhile
      e.state = words?.state ?? (e.state === "new" ? "open" : e.state);
      e.result = undefined;
      if (e.state === "unknown") e.onUnknown = "hold"; // what its worker does not know is for a person
    }
    this.hear(news);
    this.ended = end?.state;
    return true;
  }
  // The turn comes to an end, and what stands in our memory is thrown away: with what has happened all the same. If
  // that is refused, too (it is too large, or the journal full), a person is asked what was done.
  async refused(error, said) {
    const { code, status, message } = error, tries = ++this.refusals;
    if (LOST.has(code) || !(status < 500) || tries === 3) return void this.die("lost");
    this.worker.log(`${this.id}: ${message} (${code ?? status})`);
    const news = code === "BAD_ENTRY" ? await this.post([]).catch(() => []) : []; // decided by a person, meanwhile?
    const decided = (e) => news.some((c) => c.name === e.name && c.n === e.n);
    const anew = ANEW.has(code) || said.some(decided);
    const again = said.filter((e) => (this.halt ? e.result : happened(e)) && !decided(e));
    if (!anew && tries === 2)
      for (const e of again) if (e.result.state === "done") this.settle(e, failed(error, { state: "unknown" }));
    this.outbox = [...again, ...this.outbox.filter((e) => !again.includes(e))];
    this.halt = anew || tries === 2 ? RELEASED : failed(error);
  }

  // --- what is executed
  ready(e) {
    if (!works.has(e.kind) || e.busy || e.result || ended(e)) return false;
    if (e.state === "unknown") return (e.onUnknown ?? e.work.onUnknown) !== "hold";
    return e.state !== "failed" || (e.due ?? 0) <= clock();
  }
  async execute(e) {
    const { probe } = e.work, asks = e.state === "unknown" && probe;
    const key = e.key ?? `${this.id}/${encode(e.name)}/${e.n}${e.kind === "undo" ? "/undo" : ""}`;
    const found = async (otherwise) => { const out = await probe(key); return out == null ? otherwise() : done(out); };
    const again = () => (e.over || (this.cancelled && e.kind === "step") ? undefined : 0);
    const missing = () => failed({ code: "NOT_DONE", message: "it was not done" }, { retryAfterMs: again() });
    let result;
    e.busy = true;
    this.running++;
    try {
      if (!asks) result = await this.attempt(e, key).then(done).catch((error) => this.judge(e, error));
      if (asks) result = await found(missing);
      else if (result.state === "unknown" && probe) // in doubt: the probe knows, or nobody does
        result = await found(() => this.judge(e, new NotDone(result.error.message)));
    } catch (error) { result ??= failed(error, { state: "unknown" }); }
    e.busy = false;
    this.running--;
    this.settle(e, result);
    this.wake();
  }
  async attempt(e, key) {
    const { fn, timeout } = e.work, { signal } = (e.abort = new AbortController()), attempt = ++e.attempt;
    if (!timeout) return fn(key, { attempt, signal });
    const timer = setTimeout(() => e.abort.abort(new Error("it took too long")), duration(timeout));
    const late = new Promise((_, no) => signal.addEventListener("abort", () => no(signal.reason)));
    return Promise.race([fn(key, { attempt, signal }), late]).finally(() => clearTimeout(timer));
  }
  judge(e, error) {
    const { effect, onUnknown, retry } = e.work;
    if (error instanceof Final) return failed(error);
    const doubted = effect === "claimed" && onUnknown !== "retry" && !(error instanceof NotDone);
    if (doubted) return failed(error, { state: "unknown" });
    const p = { maxAttempts: 3, initialMs: 1000, factor: 2, maxMs: 300000, jitter: true, ...this.retry, ...retry };
    const grown = duration(p.initial ?? p.initialMs) * p.factor ** (e.attempt - 1);
    const wait = Math.min(duration(p.max ?? p.maxMs), grown) * (p.jitter ? 0.5 + Math.random() / 2 : 1);
    return failed(error, e.attempt < p.maxAttempts && { retryAfterMs: Math.ceil(error?.retryAfterMs ?? wait) });
  }
  settle(e, result) {
    e.update(result).result = result;
    if (!this.outbox.includes(e)) this.outbox.push(e);
    if (e.over && e.state !== "unknown") this.pending.delete(e);
  }

  // --- a turn
  async start() {
    this.started = true;
    try {
      this.done = { state: "completed", output: json(await this.fn.code(context(this), this.input)) };
    } catch (error) {
      this.done = failed(error, { step: error instanceof EntryError ? error.step : undefined });
    }
    this.wake();
  }
  async turn({ seq, retry, cancelled }, journal) { // true: suspended, and worth to be kept
    Object.assign(this, { seq, retry, cancelled, halt: null, ended: null, undoing: null, refusals: 0 });
    this.replaying = !this.started && journal.length > 0;
    this.hear(journal.sort((a, b) => a.i - b.i)); // laid out by their places, and told of by seq
    this.news.sort((a, b) => a.seq - b.seq);
    if (!this.started) this.start();
    for (;;) {
      await tick();
      if (this.lapsed()) this.die("lapsed");
      if (this.dead || this.ended) return !this.dead && this.ended === "suspended";
      this.replaying &&= this.news.length > 0;
      const next = this.halt ? null : this.news.shift() ?? this.foreseen();
      if (next) await this.deliver(next);
      else await this.move();
    }
  }
  async move() { // the code asks for nothing more: what is next
    if (this.worker.stopping) this.halt ??= RELEASED;
    const { halt, cancelled, done } = this, pending = [...this.pending];
    if (halt) this.outbox = this.outbox.filter((e) => halt.state !== "diverged" && happened(e));
    if (this.outbox.length > CALL_MAX) return this.send();
    const idle = halt || (done?.state === "failed" && !cancelled);
    const mine = idle ? [] : pending.filter((e) => !cancelled || e.state === "unknown");
    const steps = mine.filter((e) => this.ready(e));
    if (steps.length) return this.begin(steps);
    if (this.running || !(halt || cancelled || done || pending.length)) return this.wait(mine);
    if (halt) return this.send(halt);
    if (cancelled) return this.unwind();
    if (!done) return pending.some(ended) ? this.send() : this.suspend(pending);
    if (this.at < this.places.length) return this.diverge(this.places[this.at]);
    this.outbox = this.outbox.filter((e) => !isUnborn(e.about ?? e));
    return this.send(done);
  }
  wait(pending) { // for what is executed, or for the code itself
    const beat = this.sent + this.worker.leaseMs / 3 - clock();
    if (this.outbox.some((e) => !e.busy)) return this.send();
    if (beat <= 0) return this.send(undefined, this.outbox[0]); // a heartbeat
    const due = pending.filter((e) => !e.busy && e.due).map((e) => e.due - clock());
    return this.nap(Math.max(1, Math.min(beat, ...due)));
  }
  // In one call, which is answered before anything is executed. One that is not claimed, and the last that the code has
  // asked for, needs no word before: it is one write, when it has ended.
  async begin(steps) {
    const [e] = steps, { effect, undo } = e.work, plain = effect !== "claimed" && !undo;
    const lone = steps.length === 1 && !this.running && plain && (e.state !== "new" || this.outbox.at(-1) === e) && e;
    const begins = (o) => o !== lone && o.state !== "begun" && !(o.state === "unknown" && o.work.probe);
    for (const o of steps) if (begins(o) && !this.outbox.includes(o)) this.outbox.push(o);
    if (lone && this.outbox.some((o) => o !== lone)) return this.send(undefined, lone);
    while (!lone && this.outbox.length) if (!(await this.send())) return;
    if (this.lapsed()) return this.die("lapsed");
    for (const o of steps)
      if (!this.halt) this.execute(o);
      else if (o.state === "begun") this.settle(o, failed("not executed", { retryAfterMs: 0 }));
  }
  suspend(open) {
    const whole = (group) => open.every((e) => group.has(e)) && [...group].every((e) => e.over || open.includes(e));
    const any = (open.length > 1 && ![...this.groups].some(whole)) || undefined;
    return this.send({ state: "suspended", awaits: open.map(brief), any });
  }
  unwind() { // cancelled, and nothing is in doubt: what is done is undone, in reverse
    const all = [...this.entries.values()], last = this.undoing, over = ({ id }) => ended(this.undos.get(id) ?? {});
    // What has failed is for a person, when the rest is done. The engine undoes a child, before what is ahead of it.
    const owes = (o) => o.state === "done" && this.marked.has("compensate" + o.id) && !over(o);
    const e = all.filter(owes).pop(), between = last ? all.slice(all.indexOf(e), all.indexOf(last)) : [];
    if (e && between.some(({ kind }) => kind === "child")) return this.send(RELEASED);
    if (this.outbox.length) return this.send();
    if (!e) return this.send({ state: "undone" });
    if (!e.undo) return this.diverge({ ...brief(e), kind: "compensate" });
    const u = this.undos.get(e.id) ?? new Entry("undo", e.name, e.n), { fn, effect, onUnknown } = e.undo;
    const work = { ...e.undo, fn: (key, more) => fn(e.output, key, more) };
    this.undos.set(e.id, Object.assign(u, { work, fields: { effect, onUnknown } }));
    if (!this.ready(u)) return this.suspend([u]);
    this.undoing = e;
    this.outbox.push(u);
    return this.begin([u]);
  }
}

// --- what one writes

// Options of steps in place of the code's: what `hapax explore` suggests, it tries so.
const tried = JSON.parse(process.env.HAPAX_TRY ?? "{}");
function working({ effect = "keyed", onUnknown, probe, retry, timeout }, fn) {
  onUnknown ??= effect !== "claimed" ? "retry" : probe ? "probe" : "hold";
  return { fn, effect, onUnknown, probe: onUnknown === "retry" ? undefined : probe, retry, timeout };
}
function decided({ kind, name, n, output }) {
  if (output?.decision === "approve") return output;
  const message = `${name}: rejected${output?.by ? " by " + output.by : ""}`;
  throw Object.assign(new EntryError({ kind, name, n, error: { ...output, code: "REJECTED", message } }), output);
}

function context(run) {
  const patches = new Map(), timed = (o) => (o.timeout == null ? {} : { timeoutMs: duration(o.timeout) });
  const swapped = (options, fn) => (typeof options === "function" ? [fn ?? {}, options] : [options, fn]);
  const value = (name, output) => run.ask("value", name, { output });
  return {
    id: run.id,
    step(name, ...rest) {
      const [given, fn] = swapped(...rest), options = { ...given, ...tried[name] }, work = working(options, fn);
      work.undo = options.compensate && working({}, options.compensate);
      run.worker.fakes?.(name, work);
      return run.ask("step", name, { effect: work.effect, onUnknown: work.onUnknown }, { work });
    },
    sleep(name, time) {
      return run.ask("sleep", name, time instanceof Date ? { until: time.toISOString() } : { forMs: duration(time) });
    },
    event: (name, o = {}) => run.ask("event", name, { event: o.event ?? name, ...timed(o) }),
    approval: (name, o = {}) => run.ask("approval", name, timed(o), { view: decided }),
    child: (name, fn, input = {}) => run.ask("child", name, { workflow: fn.name ?? fn, input: json(input) }),
    now: () => value("now", Date.now()),
    random: () => value("random", Math.random()),
    uuid: () => value("uuid", randomUUID()),
    attribute: (name, value) => run.ask("attribute", name, { value: json(value) }),
    async patched(name) { // true for runs that have not been here before it was written
      const mark = "patched " + name, here = () => run.entries.has(idOf(mark, 0));
      if (!patches.has(mark)) patches.set(mark, here() || (run.at >= run.places.length && !run.cancelled));
      return patches.get(mark) && !run.uses.has(mark) ? value(mark, true) : patches.get(mark);
    },
    compensate(name, ...rest) {
      const [options, fn] = swapped(...rest), e = run.entries.get(idOf(name, options.n ?? run.uses.get(name) - 1));
      if (!e?.asked) throw new Final(`there is no step "${name}" to compensate`);
      run.compensate(e, working(options, fn));
    },
    all(list) {
      const group = new Set([...list].map((p) => p?.[entry]));
      if (!group.has(undefined)) run.groups.add(group);
      return Promise.all(list).finally(() => run.groups.delete(group));
    },
    race: (list) => Promise.race(list).finally(() => list.forEach((p) => run.drop(p?.[entry]))),
    log(...words) { if (!run.replaying) run.worker.log(`${run.id}:`, ...words); },
  };
}
