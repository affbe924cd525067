// One run of a function, in the memory of a worker: the code, and the journal that it is played against.
//
// What the code asks for (a step, a sleep, an event …) is an entry with a name; what has ended is handed to it in the order of the journal's
// sequence, one by one, and each time the code goes on until it asks for nothing more. So it goes on the same way live as in a replay.
// Nothing is executed before the entries ahead of it have been answered. See docs/functions.md for what is promised.
import { randomUUID } from "node:crypto";
import { clock, duration, encode } from "./client.js";

export class Final extends Error {} // a step that throws it is not tried again
export class NotDone extends Error {} // a claimed step that throws it has certainly done nothing: it is tried again
export class EntryError extends Error { // what an entry failed of: TIMEOUT, REJECTED, CHILD_FAILED, or a step's own error
  constructor({ kind, name, n, error }) {
    super(error?.message ?? `${kind} "${name}" has failed`);
    Object.assign(this, { name: "EntryError", code: error?.code, error, step: n ? `${name}#${n}` : name });
  }
}

// Kinds: those that are executed here; those that have ended as soon as they are asked for; those about another entry, that nobody waits for.
const works = new Set(["step", "undo"]), instant = new Set(["value", "attribute"]), marks = new Set(["compensate", "drop"]);
const CALL_MAX = 500; // entries of one call, each perhaps with its mark: the engine takes 1,000
const tick = () => new Promise(setImmediate); // after all that the code does by itself
const json = (value) => (value === undefined ? null : JSON.parse(JSON.stringify(value) ?? "null"));
const errorOf = (error) => ({ code: error?.code ? String(error.code) : undefined, message: String(error?.message ?? error) });
const failure = (code, message) => ({ state: "failed", error: { code, message } });

const idOf = (name, n) => `${n} ${name}`;
const brief = ({ kind, name, n }) => ({ kind, name, n });
const ended = (e) => e.state === "done" || e.state === "dropped" || (e.state === "failed" && e.retryAfterMs == null);

// What the wire says of it, and here: asked (by the code), over (handed to the code, or nobody waits for it), sent (the engine knows it),
// busy (being executed), result (of that, not sent yet), due. All of them have all members, so that they are of one shape for the machine.
class Entry {
  state = "new"; output; error; attempt = 0; retryAfterMs; key; i; seq;
  asked = false; over = false; sent = false; busy = false; result; due; place = 0; fields; work; undo; view; mark; abort; promise; resolve; reject;
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
  constructor(worker, turn, fn) {
    Object.assign(this, { worker, fn, id: turn.run, input: turn.input, seq: 0, asked: 0, running: 0, at: 0, places: [], outbox: [], inbox: [],
      entries: new Map(), undos: new Map(), uses: new Map(), marked: new Set(), pending: new Set(), groups: new Set() });
  }
  wake() { this.woken?.(); }
  async nap(ms) { // until something happens: a step has ended, an answer is there, the code has asked
    let timer;
    await new Promise((done) => { this.woken = done; if (ms != null) timer = setTimeout(done, ms); });
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
    const n = this.uses.get(name) ?? 0, id = idOf(name, n), next = this.cancelled ? undefined : this.places[this.at];
    let e = this.entries.get(id);
    if (n && !this.entries.get(idOf(name, n - 1)).over)
      return Promise.reject(new Final(`"${name}" is under way already: what runs at the same time needs names of its own`));
    if (next && (next !== e || e.kind !== kind)) this.diverge(next, { kind, name, n });
    if (this.dead || this.diverged || (this.cancelled && e?.kind !== kind)) return new Promise(() => {}); // a cancelled run stops at what is not in its journal
    this.uses.set(name, n + 1);
    if (next) this.at++;
    if (!e) {
      e = new Entry(kind, name, n);
      this.entries.set(id, e);
      this.outbox.push(e);
    }
    Object.assign(e, { fields, asked: true, place: this.asked++ }, more);
    if (instant.has(kind)) {
      if (e.state === "new") Object.assign(e, { state: "done", output: fields.output });
      e.over = true;
      return Promise.resolve(e.output);
    }
    e.promise = new Promise((resolve, reject) => { e.resolve = resolve; e.reject = reject; });
    e.promise[entry] = e;
    this.pending.add(e);
    this.waits ||= kind !== "step";
    if (e.work?.undo) this.compensate(e, e.work.undo);
    this.wake();
    return e.promise;
  }
  diverge(expected, found) {
    this.diverged ??= { state: "diverged", expected: brief(expected), found: found ? brief(found) : { kind: "end" } };
    this.wake();
  }
  mark(kind, e) { // said once about an entry
    const mark = new Entry(kind, e.name, e.n, e);
    if (this.marked.has(kind + e.id)) return;
    this.marked.add(kind + e.id);
    if (kind === "compensate" && e.state === "new") e.mark = mark; // goes with its entry
    else this.outbox.push(mark);
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
    if (!e.busy && !ended(e) && !(e.kind === "step" && e.state === "new")) this.mark("drop", e);
  }

  // --- what has ended, handed to the code in order of seq
  take(c) {
    const home = c.kind === "undo" ? this.undos : this.entries, id = idOf(c.name, c.n);
    if (marks.has(c.kind)) return void this.marked.add(c.kind + id);
    let e = home.get(id);
    if (!e) {
      e = new Entry(c.kind, c.name, c.n);
      home.set(id, e);
      if (home === this.entries) this.places.push(e);
    }
    e.sent = true;
    return e.update(c);
  }
  async play(changes) {
    const all = changes.map((c) => this.take(c)).filter(Boolean);
    this.places.sort((a, b) => a.i - b.i); // they come in order of seq, also from another worker that had a turn meanwhile
    if (!this.started) this.start();
    await tick();
    for (const e of all) {
      if (e.over || e.kind === "undo" || instant.has(e.kind) || !ended(e) || e.state === "dropped") continue;
      // Code that waits for something of its own is given a moment; code that waits for us will not ask for this one.
      const until = clock() + 5000, stuck = () => e.asked || this.done || this.diverged || this.dead || this.cancelled || this.pending.size;
      while (!stuck() && clock() < until) await this.nap(100);
      if (this.diverged || this.dead) return;
      if (e.asked) {
        this.deliver(e);
        await tick();
      } else if (!this.cancelled) return this.diverge(e, [...this.pending][0]);
    }
  }
  deliver(e) {
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

  // --- what is said to the engine
  wire(e, list) { // as it is now: what was never begun and has ended is one entry
    const add = (words) => list.push({ e, words });
    if (e.about) return (e.kind === "compensate" || !ended(e.about)) && add(brief(e));
    const words = Object.assign(brief(e), e.sent ? null : e.fields);
    if (works.has(e.kind)) {
      if (e.over && !e.sent) e.result ??= failure("DROPPED", "it lost its race before it began");
      Object.assign(words, e.result ?? { state: "begun" });
      e.state = words.state;
      e.result = undefined;
    } else if (e.state === "new") e.state = "open";
    e.sent = true;
    add(words);
    if (e.mark) add(brief(e.mark));
    e.mark = undefined;
  }
  call(entries, end) {
    const { worker, id, fence, seq } = this, { name, leaseMs } = worker;
    return [`functions/runs/${id}/journal`, JSON.stringify({ worker: name, fence, seq, entries, end, leaseMs })];
  }
  async post(entries, end) {
    const sent = clock(), { api, callMs, once } = this.worker;
    const answer = await api.text("POST", ...this.call(entries, end), { until: () => this.leaseEnd, timeout: callMs, once });
    this.heard(answer, sent);
    return answer;
  }
  async endedSince() { // what has ended since, and we have not done: the names of these
    const { completed } = await this.post([]).catch(() => ({}));
    return new Set(completed?.map(({ name, n }) => idOf(name, n)));
  }
  // One call, repeated until it is answered. False: not taken as it was meant; the run is cancelled, paused, or not ours any more.
  async send(end, except) {
    const held = except ? [except] : [], queue = this.outbox.filter((e) => e !== except), rest = queue.splice(CALL_MAX);
    this.outbox = held;
    if (rest.length) { // the first of them by themselves
      this.outbox = queue;
      const taken = await this.send();
      this.outbox = [...rest, ...this.outbox, ...held];
      return taken && this.send(end, except);
    }
    this.calling = true;
    await this.beat; // a heartbeat that is under way
    const said = [];
    for (const e of queue) this.wire(e, said);
    const taken = await this.tell(said, end);
    this.calling = false;
    if (taken === undefined) this.die("lost");
    return taken === true;
  }
  async tell(said, end) { // undefined: it is not ours any more
    for (let tries = 0; tries < 3 && !this.dead; tries++) {
      try {
        await this.post(said.map(({ words }) => words), end);
        return !tries;
      } catch (error) {
        if (["STALE_FENCE", "SEQ_CONFLICT", "NOT_FOUND"].includes(error.code) || !(error.status < 500)) return undefined;
        this.worker.log(`${this.id}: ${error.message} (${error.code ?? error.status})`);
        const decided = error.code === "BAD_ENTRY" ? await this.endedSince() : new Set(); // by a person, meanwhile: then it is played anew
        const cancelled = error.code === "CANCELLED", paused = error.code === "WRONG_STATUS";
        const begins = ({ kind, state }) => works.has(kind) && state === "begun", never = new Set(said.filter(({ words }) => begins(words)).map(({ e }) => e.id));
        const kept = ({ e, words }) => (works.has(words.kind) && !begins(words) && !decided.has(e.id)) || (cancelled && words.kind === "compensate" && !never.has(e.id));
        end = cancelled || paused ? undefined : said.some(({ e }) => decided.has(e.id)) ? { state: "released" } : { state: "failed", error: errorOf(error) };
        for (const it of said) if (!kept(it)) Object.assign(it.e, { over: true }), this.pending.delete(it.e); // stopped here
        said = said.filter(kept); // the outcomes alone
        this.cancelled ||= cancelled;
        this.paused ||= paused;
        if (!end && !said.length) return false;
      }
    }
  }
  heard(answer, sent) {
    Object.assign(this, { seq: answer.seq, sent, leaseEnd: Math.max(this.leaseEnd, sent + this.worker.leaseMs) });
    this.cancelled ||= answer.cancelled;
    this.paused ||= answer.paused;
    for (const c of answer.completed ?? []) {
      const e = c.kind === "step" && this.entries.get(idOf(c.name, c.n));
      if (!(e?.over && ended(e))) this.inbox.push(c); // what the code does not have yet
    }
  }
  heartbeat() { // out of sequence, and not while a call is on its way, which says as much
    const { api, callMs, leaseMs } = this.worker, sent = clock();
    if (this.lapsed()) return this.die("lapsed");
    if (this.calling || this.beating || sent - this.sent < leaseMs / 3) return;
    this.beating = true;
    this.beat = api.once("POST", ...this.call([]), { timeout: callMs }).then(({ status, body }) => {
      if (status < 300) this.heard(body, sent), this.wake();
      else if (body?.code === "STALE_FENCE") this.die("stale");
    }).catch(() => {}).finally(() => (this.beating = false));
  }

  // --- what is executed
  ready(e) {
    if (!works.has(e.kind) || e.busy || e.result || ended(e)) return false;
    return e.state === "unknown" ? e.work.onUnknown !== "hold" : e.state !== "failed" || (e.due ?? 0) <= clock();
  }
  async execute(e) {
    const { probe } = e.work, asks = e.state === "unknown" && probe, key = e.key ?? `${this.id}/${encode(e.name)}/${e.n}${e.kind === "undo" ? "/undo" : ""}`;
    const found = async () => { const out = await probe(key); return out == null ? null : { state: "done", output: json(out) }; };
    let result;
    e.busy = true;
    this.running++;
    try {
      if (!asks) e.attempt++;
      result = asks ? await found() : { state: "done", output: json(await this.attempt(e, key)) };
    } catch (error) {
      result = asks ? { state: "unknown", error: errorOf(error) } : this.judge(e, error);
      if (!asks && result.state === "unknown" && probe) // in doubt: the probe knows, or nobody does
        try { result = (await found()) ?? this.judge(e, new NotDone(error?.message)); } catch { /* nobody does */ }
    }
    e.busy = false;
    this.running--;
    if (!result && !e.over) e.update({ state: "failed", retryAfterMs: 0 }); // it was not done: begin again
    else this.settle(e, result ?? failure("DROPPED", "it was not done, and lost its race"));
    this.wake();
  }
  attempt(e, key) {
    const { fn, timeout } = e.work, abort = () => (e.abort ??= new AbortController()); // made for those who look
    const more = { attempt: e.attempt, get signal() { return abort().signal; } };
    e.abort = undefined;
    if (!timeout) return fn(key, more);
    const timer = setTimeout(() => abort().abort(new Error("it took too long")), duration(timeout));
    const late = new Promise((_, no) => more.signal.addEventListener("abort", () => no(more.signal.reason)));
    return Promise.race([fn(key, more), late]).finally(() => clearTimeout(timer));
  }
  judge(e, error) {
    const { effect, onUnknown, retry } = e.work, said = errorOf(error);
    if (error instanceof Final) return { state: "failed", error: said };
    if (effect === "claimed" && onUnknown !== "retry" && !(error instanceof NotDone)) return { state: "unknown", error: said };
    const p = { maxAttempts: 3, initialMs: 1000, factor: 2, maxMs: 300000, jitter: true, ...this.retry, ...retry };
    const wait = Math.min(duration(p.max ?? p.maxMs), duration(p.initial ?? p.initialMs) * p.factor ** (e.attempt - 1)) * (p.jitter ? 0.5 + Math.random() / 2 : 1);
    return { state: "failed", error: said, retryAfterMs: e.attempt < p.maxAttempts ? Math.ceil(error?.retryAfterMs ?? wait) : undefined };
  }
  settle(e, result) {
    e.update(result).result = result;
    if (!this.outbox.includes(e)) this.outbox.push(e);
    if (e.over && e.state !== "unknown") this.pending.delete(e);
  }
  // Where nobody but this worker can end anything the order of seq is known before the answer, and the code goes on at once.
  foreseen() {
    const known = (e) => e.kind === "step" && e.result && ended(e) && !e.over, next = this.outbox.find(known);
    if (!next) return null;
    for (const e of this.pending) if (e.kind !== "step" || e.state === "unknown" || (ended(e) && !known(e))) return null;
    return next;
  }

  // --- a turn
  async start() {
    this.started = true;
    try {
      this.done = { state: "completed", output: json(await this.fn.code(context(this), this.input)) };
    } catch (error) {
      this.done = { state: "failed", error: errorOf(error), step: error instanceof EntryError ? error.step : undefined };
    }
    this.wake();
  }
  async turn({ seq, retry, cancelled }, journal) { // true: suspended, and worth to be kept
    Object.assign(this, { retry, cancelled, ended: null, seq: Math.max(seq, journal.at(-1)?.seq ?? 0), replaying: true });
    await this.play([...this.inbox.splice(0), ...journal]);
    this.replaying = false;
    for (;;) {
      await tick();
      if (this.lapsed()) this.die("lapsed");
      if (this.dead || this.ended) return !this.dead && this.ended === "suspended";
      const next = !this.diverged && !this.inbox.length && this.foreseen();
      if (next) this.deliver(next);
      else if (this.inbox.length && !this.diverged) await this.play(this.inbox.splice(0));
      else await this.move();
    }
  }
  async end(end) { if (await this.send(end)) this.ended = end.state; }
  async move() { // the code asks for nothing more: what is next
    if (this.diverged) {
      this.outbox = [];
      return this.end(this.diverged);
    }
    const pending = [...this.pending];
    if (this.running) {
      if (this.outbox.some((e) => e !== this.lone || e.result)) return this.send(this.lone = undefined);
      await this.nap(Math.max(1, Math.min(1000, ...pending.filter((e) => !e.busy && e.due).map((e) => e.due - clock()))));
      const again = pending.filter((e) => e.state === "failed" && this.ready(e));
      return again.length && !this.cancelled && !this.paused && this.begin(again);
    }
    this.lone = null;
    if (this.cancelled) return this.unwind();
    if (this.paused || this.worker.stopping) {
      this.outbox = this.outbox.filter((e) => e.result);
      return this.end({ state: "released" });
    }
    const steps = this.done?.state === "failed" ? [] : pending.filter((e) => this.ready(e)), [one] = steps;
    if (steps.length === 1 && one.work.effect !== "claimed" && !one.work.undo && (one.state !== "new" || this.outbox.at(-1) === one)) { // one write, when it has ended
      if (this.outbox.some((e) => e !== one)) return this.send(undefined, one.state === "new" ? one : null);
      return void this.execute((this.lone = one));
    }
    if (steps.length) return this.begin(steps);
    if (!this.done) return pending.length ? this.suspend(pending) : this.nap(); // or the code waits for something of its own
    if (this.at < this.places.length) return this.diverge(this.places[this.at]);
    this.outbox = this.outbox.filter((e) => !(e.kind === "step" && e.state === "new"));
    return this.end(this.done);
  }
  async begin(steps) { // in one call; nothing is executed before it is answered
    const begun = steps.filter((e) => !(e.state === "unknown" && e.work.probe)), doubted = new Set(steps.filter((e) => e.state === "unknown"));
    for (const e of begun) if (!this.outbox.includes(e)) this.outbox.push(e);
    if (this.outbox.length && !(await this.send())) return;
    if (this.lapsed()) return this.die("lapsed");
    for (const e of steps)
      if (!this.cancelled) this.execute(e);
      else if (doubted.has(e)) e.state = "unknown"; // another one may have done it: unwind finds out
      else if (!e.over && begun.includes(e)) this.settle(e, failure("CANCELLED", "not executed"));
  }
  async suspend(open) {
    const all = [...this.groups].some((group) => open.every((e) => group.has(e)) && [...group].every((e) => e.over || open.includes(e)));
    return this.end({ state: "suspended", awaits: open.map(brief), any: open.length > 1 && !all ? true : undefined });
  }
  async unwind() { // cancelled: what is in doubt gets an outcome, what is done is undone, in reverse
    for (const e of [...this.pending].filter((o) => this.ready(o) && o.state === "unknown")) {
      if (e.work.effect === "claimed" && !e.work.probe) this.settle(e, { state: "unknown", error: { message: "cancelled while in doubt" } });
      else await this.execute(e);
      if (!e.result && !ended(e)) this.settle(e, failure("CANCELLED", "it was not done"));
    }
    const owed = [...this.entries.values()].filter((o) => o.state === "done" && this.marked.has("compensate" + o.id)).sort((a, b) => b.place - a.place);
    const at = owed.findIndex(({ id }) => !ended(this.undos.get(id) ?? {})), e = owed[at]; // one that has failed is for a person, when the rest is done
    if (!e) return this.end({ state: "undone" });
    if (!e.undo) return this.diverge({ ...brief(e), kind: "compensate" });
    const u = this.undos.get(e.id) ?? new Entry("undo", e.name, e.n), { fn, effect, onUnknown } = e.undo;
    this.undos.set(e.id, Object.assign(u, { work: { ...e.undo, fn: (key, more) => fn(e.output, key, more) }, fields: { effect, onUnknown } }));
    if (!this.ready(u)) return this.suspend([u]);
    if (effect === "claimed") {
      this.outbox.push(u);
      if (!(await this.send())) return;
    }
    await this.execute(u);
    const child = (o) => o.kind === "child" && o.place < e.place && o.place > owed[at + 1]?.place; // it is undone before the next one, by the engine
    return ended(u) && [...this.entries.values()].some(child) ? this.end({ state: "released" }) : this.send(); // and once more, for the next one
  }
}

// --- what one writes --------------------------------------------------------------------------------------------------

const tried = JSON.parse(process.env.HAPAX_TRY ?? "{}"); // options of steps in place of the code's: what `hapax explore` suggests, it tries so
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
  return {
    id: run.id,
    step(name, ...rest) {
      const [given, fn] = swapped(...rest), options = { ...given, ...tried[name] }, work = working(options, fn), { effect, onUnknown } = work;
      work.fn = run.worker.fakes?.(name, fn, effect) ?? fn;
      return run.ask("step", name, { effect, onUnknown }, { work: { ...work, undo: options.compensate && working({}, options.compensate) } });
    },
    sleep: (name, time) => run.ask("sleep", name, time instanceof Date ? { until: time.toISOString() } : { forMs: duration(time) }),
    event: (name, o = {}) => run.ask("event", name, { event: o.event ?? name, ...timed(o) }),
    approval: (name, o = {}) => run.ask("approval", name, timed(o), { view: decided }),
    child: (name, fn, input = {}) => run.ask("child", name, { workflow: fn.name ?? fn, input: json(input) }),
    now: () => run.ask("value", "now", { output: Date.now() }),
    random: () => run.ask("value", "random", { output: Math.random() }),
    uuid: () => run.ask("value", "uuid", { output: randomUUID() }),
    attribute: (name, value) => run.ask("attribute", name, { value: json(value) }),
    async patched(name) { // true for runs that have not been here before it was written
      const mark = "patched " + name;
      if (!patches.has(mark)) patches.set(mark, run.entries.has(idOf(mark, 0)) || (run.at >= run.places.length && !run.cancelled));
      return patches.get(mark) && !run.uses.has(mark) ? run.ask("value", mark, { output: true }) : patches.get(mark);
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
