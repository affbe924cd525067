// One run of a function, in the memory of a worker: the code, and the journal that it is played against.
//
// What the code asks for (a step, a sleep, an event …) is an entry with a
// name; what has ended is handed to it in the order of the journal's sequence, one by one, and each time the code goes on until it
// asks for nothing more. So it goes on the same way live as in a replay. Nothing is executed before the entries ahead of it have been
// answered. See docs/functions.md for what is promised.
import { randomUUID } from "node:crypto";
import { clock, duration, encode } from "./client.js";

export class Final extends Error {} // a step that throws it is not tried again
export class NotDone extends Error {} // a claimed step that throws it has certainly done nothing: it is tried again
export class EntryError extends Error { // what an entry failed of: TIMEOUT, REJECTED, CHILD_FAILED, or a step's own error
  constructor(e) {
    super(e.error?.message ?? `${e.kind} "${e.name}" has failed`);
    Object.assign(this, { name: "EntryError", code: e.error?.code, error: e.error, step: label(e) });
  }
}

const label = (e) => (e.n ? `${e.name}#${e.n}` : e.name);
const tick = () => new Promise(setImmediate); // after all that the code does by itself
const json = (value) => (value === undefined ? null : JSON.parse(JSON.stringify(value) ?? "null"));
const errorOf = (error) => ({ ...(error?.code ? { code: String(error.code) } : {}), message: String(error?.message ?? error) });

// --- a run in memory --------------------------------------------------------------------------------------------------

const instant = new Set(["value", "attribute"]); // ended as soon as they are asked for
const marks = new Set(["compensate", "drop"]); // about an entry; nothing that the code waits for
const works = new Set(["step", "undo"]);
const CALL_MAX = 500; // entries of one call, each perhaps with its mark: the engine takes 1,000
const idOf = (e) => `${e.n} ${e.name}`;
const brief = ({ kind, name, n }) => ({ kind, name, n });
const ended = (e) => e.state === "done" || e.state === "dropped" || (e.state === "failed" && e.retryAfterMs == null);
const policy = (...all) => {
  const p = Object.assign({ maxAttempts: 3, initialMs: 1000, factor: 2, maxMs: 300000, jitter: true }, ...all);
  return { ...p, initialMs: duration(p.initial ?? p.initialMs), maxMs: duration(p.max ?? p.maxMs) };
};

// An entry: what the wire says of it (kind, name, n, state, output, error, attempt …), and here: asked (by the code), over (handed to
// the code, or nobody waits for it), sent (the engine knows it), busy (being executed), result (of that, not sent yet), due.
export class Run {
  constructor(worker, turn, fn) {
    Object.assign(this, { worker, fn, id: turn.run, input: turn.input, seq: 0, asked: 0, running: 0, at: 0, places: [], outbox: [], inbox: [],
      entries: new Map(), undos: new Map(), uses: new Map(), marked: new Set(), pending: new Set(), groups: new Set(), of: new WeakMap() });
  }
  key(e) { return e.key ?? `${this.id}/${encode(e.name)}/${e.n}${e.kind === "undo" ? "/undo" : ""}`; }
  wake() { this.woken?.(); }
  nap(ms) { // until something happens: a step has ended, an answer is there, the code has asked
    let timer;
    return new Promise((done) => { this.woken = done; if (ms != null) timer = setTimeout(done, ms); }).finally(() => clearTimeout(timer));
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
    const never = new Promise(() => {}), n = this.uses.get(name) ?? 0, id = idOf({ name, n }), next = this.places[this.at];
    if (this.dead || this.diverged) return never;
    if (n && !this.entries.get(idOf({ name, n: n - 1 })).over)
      return Promise.reject(new Final(`"${name}" is under way already: what runs at the same time needs names of its own`));
    let e = this.entries.get(id);
    if (this.cancelled ? e?.kind !== kind : next && (next !== e || e.kind !== kind)) {
      if (!this.cancelled) this.diverge(next, { kind, name, n });
      return never; // a cancelled run stops at what is not in its journal
    }
    this.uses.set(name, n + 1);
    if (next && !this.cancelled) this.at++;
    if (!e) this.entries.set(id, (e = { kind, name, n, state: "new" })), this.outbox.push(e);
    Object.assign(e, { fields, asked: true, place: this.asked++ }, more);
    if (instant.has(kind)) {
      if (e.state === "new") Object.assign(e, { state: "done", output: fields.output });
      e.over = true;
      return Promise.resolve(e.output);
    }
    const promise = new Promise((resolve, reject) => Object.assign(e, { resolve, reject }));
    promise.catch(() => {}); // nobody has to look at it
    this.of.set(promise, e);
    this.pending.add(e);
    if (e.work?.undo) this.compensate(e, e.work.undo);
    this.wake();
    return promise;
  }
  diverge(expected, found) {
    this.diverged ??= { state: "diverged", expected: brief(expected), found: found ? brief(found) : { kind: "end" } };
    this.wake();
  }
  compensate(e, undo) {
    e.undo = undo;
    if (this.marked.has("compensate " + idOf(e))) return;
    this.marked.add("compensate " + idOf(e));
    const mark = { kind: "compensate", name: e.name, n: e.n };
    if (e.state === "new") e.mark = mark; // goes with its entry
    else this.outbox.push(mark);
  }
  drop(e) { // a race's loser; what is being executed, or in doubt, comes to its end, and nobody waits for it
    if (!e || e.over) return;
    e.over = true;
    if (e.state === "unknown") return;
    this.pending.delete(e);
    e.abort?.abort();
    if (!e.busy && !ended(e) && !(e.kind === "step" && e.state === "new") && !this.marked.has("drop " + idOf(e)))
      this.outbox.push({ kind: "drop", name: e.name, n: e.n, about: e });
  }

  // --- what has ended, handed to the code in order of seq
  take(c) {
    if (marks.has(c.kind)) return void this.marked.add(c.kind + " " + idOf(c));
    const home = c.kind === "undo" ? this.undos : this.entries;
    let e = home.get(idOf(c));
    if (!e) {
      home.set(idOf(c), (e = brief(c)));
      if (c.kind !== "undo") this.places.push(e);
    }
    if (c.state !== "failed" || !("retryAfterMs" in c)) delete e.retryAfterMs;
    Object.assign(e, c, { sent: true });
    if (c.retryAfterMs != null) e.due = clock() + c.retryAfterMs;
    return e;
  }
  async play(changes) {
    const all = changes.map((c) => this.take(c)).filter(Boolean);
    if (!this.started) this.places.sort((a, b) => a.i - b.i), this.start();
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
    try { e.state === "done" ? e.resolve(e.view ? e.view(e) : e.output) : e.reject(new EntryError(e)); } catch (error) { e.reject(error); }
  }

  // --- what is said to the engine
  wire(e) { // as it is now: what was never begun and has ended is one entry
    if (e.about) return ended(e.about) ? [] : [brief(e)];
    if (marks.has(e.kind)) return [e];
    const said = { ...brief(e), ...(e.sent ? {} : e.fields) };
    if (works.has(e.kind)) {
      if (e.over && !e.sent && !e.result) e.result = { state: "failed", error: { code: "DROPPED", message: "it lost its race before it began" } };
      Object.assign(said, e.result ?? { state: "begun" });
      Object.assign(e, e.result ?? { state: "begun" });
      e.result = null;
    } else if (e.state === "new") e.state = "open";
    e.sent = true;
    const { mark } = e; // said once, with the first word about it
    delete e.mark;
    return mark ? [said, mark] : [said];
  }
  // One call, repeated until it is answered. False: not taken as it was meant; the run is cancelled, paused, or not ours any more.
  async send(end, except) {
    const { worker } = this, queue = this.outbox.filter((e) => e !== except), rest = queue.splice(CALL_MAX);
    this.outbox = except ? [except] : [];
    if (rest.length) { // the first of them by themselves
      this.outbox = queue;
      const taken = await this.send();
      this.outbox = [...rest, ...this.outbox, ...(except ? [except] : [])];
      return taken && this.send(end, except);
    }
    this.calling = true;
    await this.beat; // a heartbeat that is under way
    let said = queue.flatMap((e) => this.wire(e).map((entry) => ({ e, entry })));
    for (let tries = 0; tries < 3 && !this.dead; tries++) {
      const sent = clock(), entries = said.map(({ entry }) => entry);
      const text = JSON.stringify({ worker: worker.name, fence: this.fence, seq: this.seq, entries, end, leaseMs: worker.leaseMs });
      try {
        const answer = await worker.api.text("POST", `functions/runs/${this.id}/journal`, text, { until: () => this.leaseEnd, timeout: worker.callMs, once: worker.once });
        this.calling = false;
        this.heard(answer, sent);
        return !tries;
      } catch (error) {
        if (["STALE_FENCE", "SEQ_CONFLICT", "NOT_FOUND"].includes(error.code) || !(error.status < 500)) break;
        worker.log(`${this.id}: ${error.message} (${error.code ?? error.status})`);
        const cancelled = error.code === "CANCELLED", paused = error.code === "WRONG_STATUS";
        const never = new Set(said.filter(({ entry }) => entry.kind === "step" && entry.state === "begun").map(({ entry }) => idOf(entry))); // is not begun
        const outcome = ({ kind, state, ...e }) => (works.has(kind) && state !== "begun") || (cancelled && kind === "compensate" && !never.has(idOf(e)));
        for (const { e, entry } of said) if (!outcome(entry)) Object.assign(e, { over: true }), this.pending.delete(e); // stopped here
        said = said.filter(({ entry }) => outcome(entry)); // the outcomes alone
        end = cancelled || paused ? undefined : { state: "failed", error: errorOf(error) };
        this.cancelled ||= cancelled;
        this.paused ||= paused;
        if (!end && !said.length) return (this.calling = false);
      }
    }
    this.calling = false;
    this.die("lost");
    return false;
  }
  heard(answer, sent) {
    this.seq = answer.seq;
    this.sent = sent;
    this.leaseEnd = Math.max(this.leaseEnd, sent + this.worker.leaseMs);
    this.cancelled ||= answer.cancelled;
    this.paused ||= answer.paused;
    this.inbox.push(...(answer.completed ?? []));
  }
  heartbeat() { // out of sequence, and not while a call is on its way, which says as much
    const { worker } = this, sent = clock();
    if (this.lapsed()) return this.die("lapsed");
    if (this.calling || this.beating || sent - this.sent < worker.leaseMs / 3) return;
    this.beating = true;
    const text = JSON.stringify({ worker: worker.name, fence: this.fence, seq: this.seq, entries: [], leaseMs: worker.leaseMs });
    this.beat = worker.api.once("POST", `functions/runs/${this.id}/journal`, text, { timeout: worker.callMs }).then((answer) => {
      if (answer.status < 300) this.heard(answer.body, sent), this.wake();
      else if (answer.body?.code === "STALE_FENCE") this.die("stale");
    }).catch(() => {}).finally(() => (this.beating = false));
  }

  // --- what is executed
  ready(e) {
    if (!works.has(e.kind) || e.busy || e.result || ended(e)) return false;
    if (e.state === "unknown") return e.work.onUnknown !== "hold";
    return e.state !== "failed" || (e.due ?? 0) <= clock();
  }
  async execute(e) {
    const { fn, probe, timeout } = e.work, key = this.key(e), asks = e.state === "unknown" && probe, abort = (e.abort = new AbortController());
    const timer = timeout && setTimeout(() => abort.abort(new Error("it took too long")), duration(timeout));
    const late = new Promise((_, no) => abort.signal.addEventListener("abort", () => timer && no(abort.signal.reason)));
    const found = async () => { const out = await probe(key); return out == null ? null : { state: "done", output: json(out) }; };
    late.catch(() => {});
    e.busy = true;
    this.running++;
    try {
      if (!asks) e.attempt = (e.attempt ?? 0) + 1;
      e.result = asks ? await found() : { state: "done", output: json(await Promise.race([fn(key, { attempt: e.attempt, signal: abort.signal }), late])) };
    } catch (error) {
      e.result = asks ? { state: "unknown", error: errorOf(error) } : this.judge(e, error);
      if (!asks && e.result.state === "unknown" && probe) // in doubt: the probe knows, or nobody does
        try { e.result = (await found()) ?? this.judge(e, new NotDone(error?.message)); } catch { /* nobody does */ }
    }
    clearTimeout(timer);
    Object.assign(e, { busy: false, abort: null });
    this.running--;
    if (e.over && !e.result) e.result = { state: "failed", error: { code: "DROPPED", message: "it was not done, and lost its race" } };
    if (e.result) this.settle(e);
    else Object.assign(e, { state: "failed", retryAfterMs: 0, due: 0 }); // it was not done: begin again
    this.wake();
  }
  judge(e, error) {
    const { effect, onUnknown, retry } = e.work, p = policy(this.retry, retry), said = errorOf(error);
    if (error instanceof Final) return { state: "failed", error: said };
    if (effect === "claimed" && onUnknown !== "retry" && !(error instanceof NotDone)) return { state: "unknown", error: said };
    const wait = Math.min(p.maxMs, p.initialMs * p.factor ** (e.attempt - 1)) * (p.jitter ? 0.5 + Math.random() / 2 : 1);
    return { state: "failed", error: said, ...(e.attempt < p.maxAttempts && { retryAfterMs: Math.ceil(error?.retryAfterMs ?? wait) }) };
  }
  settle(e) {
    delete e.retryAfterMs;
    Object.assign(e, e.result);
    if (e.retryAfterMs != null) e.due = clock() + e.retryAfterMs;
    if (!this.outbox.includes(e)) this.outbox.push(e);
    if (e.over && e.state !== "unknown") this.pending.delete(e);
  }
  // Where nobody but this worker can end anything the order of seq is known before the answer, and the code goes on at once.
  foreseen() {
    const known = this.outbox.filter((e) => e.kind === "step" && e.result && ended(e) && !e.over);
    return known.length && [...this.pending].every((e) => e.kind === "step" && e.state !== "unknown" && (!ended(e) || known.includes(e))) && known[0];
  }

  // --- a turn
  start() {
    this.started = true;
    Promise.resolve().then(() => this.fn.code(context(this), this.input)).then(
      (output) => (this.done = { state: "completed", output: json(output) }),
      (error) => (this.done = { state: "failed", error: errorOf(error), ...(error instanceof EntryError && { step: error.step }) }),
    ).finally(() => this.wake());
  }
  async turn(turn, journal, sent) { // true: suspended, and worth to be kept
    Object.assign(this, { fence: turn.fence, retry: turn.retry, sent, leaseEnd: sent + this.worker.leaseMs, cancelled: turn.cancelled, ended: null,
      seq: Math.max(turn.seq, journal.at(-1)?.seq ?? 0) });
    this.replaying = true;
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
    if (this.diverged) return this.end(this.diverged, (this.outbox = []));
    if (this.running) {
      if (this.outbox.some((e) => e !== this.lone || e.result)) return this.send(this.lone = undefined);
      await this.nap(Math.max(1, Math.min(1000, ...[...this.pending].filter((e) => !e.busy && e.due).map((e) => e.due - clock()))));
      const again = [...this.pending].filter((e) => e.state === "failed" && this.ready(e));
      return again.length && !this.cancelled && !this.paused && this.begin(again);
    }
    this.lone = null;
    if (this.cancelled) return this.unwind();
    if (this.paused || this.worker.stopping) {
      this.outbox = this.outbox.filter((e) => e.result);
      return this.end({ state: "released" });
    }
    const steps = this.done?.state === "failed" ? [] : [...this.pending].filter((e) => this.ready(e)), [one] = steps;
    if (steps.length === 1 && one.work.effect !== "claimed" && !one.work.undo && (one.state !== "new" || this.outbox.at(-1) === one)) { // one write, when it has ended
      if (this.outbox.some((e) => e !== one)) return this.send(undefined, one.state === "new" ? one : null);
      return void this.execute((this.lone = one));
    }
    if (steps.length) return this.begin(steps);
    if (this.done) {
      if (this.at < this.places.length) return this.diverge(this.places[this.at]);
      this.outbox = this.outbox.filter((e) => !(e.kind === "step" && e.state === "new"));
      return this.end(this.done);
    }
    return this.pending.size ? this.suspend([...this.pending]) : this.nap(); // or the code waits for something of its own
  }
  async begin(steps) { // in one call; nothing is executed before it is answered
    const begun = steps.filter((e) => !(e.state === "unknown" && e.work.probe)), doubted = new Set(steps.filter((e) => e.state === "unknown"));
    for (const e of begun) if (!this.outbox.includes(e)) this.outbox.push(e);
    if (this.outbox.length && !(await this.send())) return;
    if (this.lapsed()) return this.die("lapsed");
    for (const e of steps)
      if (!this.cancelled) this.execute(e);
      else if (doubted.has(e)) e.state = "unknown"; // another one may have done it: unwind finds out
      else if (!e.over && begun.includes(e)) this.settle(Object.assign(e, { result: { state: "failed", error: { code: "CANCELLED", message: "not executed" } } }));
  }
  async suspend(open) {
    const all = [...this.groups].some((group) => open.every((e) => group.has(e)) && [...group].every((e) => e.over || open.includes(e)));
    return this.end({ state: "suspended", awaits: open.map(brief), ...(open.length > 1 && !all && { any: true }) });
  }
  async unwind() { // cancelled: what is in doubt gets an outcome, what is done is undone, in reverse
    for (const e of [...this.pending].filter((o) => this.ready(o) && o.state === "unknown")) {
      if (e.work.effect === "claimed" && !e.work.probe) this.settle(Object.assign(e, { result: { state: "unknown", error: { message: "cancelled while in doubt" } } }));
      else await this.execute(e);
      if (!e.result && !ended(e)) this.settle(Object.assign(e, { result: { state: "failed", error: { code: "CANCELLED", message: "it was not done" } } }));
    }
    const owed = [...this.entries.values()].filter((o) => o.state === "done" && this.marked.has("compensate " + idOf(o))).sort((a, b) => b.place - a.place);
    for (const [i, e] of owed.entries()) {
      const u = this.undos.get(idOf(e)) ?? { ...brief(e), kind: "undo", state: "new" };
      this.undos.set(idOf(e), u);
      if (ended(u)) continue; // undone; or it has failed, and a person is asked when the rest is
      if (!e.undo) return this.diverge({ ...brief(e), kind: "compensate" });
      Object.assign(u, { work: { ...e.undo, fn: (key, more) => e.undo.fn(e.output, key, more) }, fields: { effect: e.undo.effect, onUnknown: e.undo.onUnknown } });
      if (!this.ready(u)) return this.suspend([u]);
      if (u.work.effect === "claimed" && (this.outbox.push(u), !(await this.send()))) return;
      await this.execute(u);
      const child = (o) => o.kind === "child" && o.place < e.place && o.place > owed[i + 1]?.place; // it is undone before the next one, by the engine
      return ended(u) && [...this.entries.values()].some(child) ? this.end({ state: "released" }) : this.send(); // and once more, for the next one
    }
    return this.end({ state: "undone" });
  }
}

// --- what one writes --------------------------------------------------------------------------------------------------

const effects = (o) => ({ effect: o.effect ?? "keyed", onUnknown: o.onUnknown ?? (o.effect === "claimed" ? (o.probe ? "probe" : "hold") : "retry") });
const working = (o, fn) => ({ retry: o.retry, timeout: o.timeout, probe: o.onUnknown === "retry" ? undefined : o.probe, ...effects(o), fn });
const decided = ({ output, ...e }) => {
  if (output?.decision === "approve") return output;
  throw Object.assign(new EntryError({ ...e, error: { ...output, code: "REJECTED", message: `${e.name}: rejected${output?.by ? " by " + output.by : ""}` } }), output);
};

const tried = JSON.parse(process.env.HAPAX_TRY ?? "{}"); // options of steps in place of the code's: what `hapax explore` suggests, it tries so

function context(run) {
  const patches = new Map(), timed = (o) => (o?.timeout == null ? {} : { timeoutMs: duration(o.timeout) });
  return {
    id: run.id,
    step(name, options, fn) {
      if (typeof options === "function") [options, fn] = [fn ?? {}, options];
      options = { ...options, ...tried[name] };
      const work = working(options, run.worker.fakes?.(name, fn, effects(options).effect) ?? fn), undo = options.compensate && working({}, options.compensate);
      return run.ask("step", name, effects(options), { work: { ...work, undo } });
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
      if (!patches.has(mark)) patches.set(mark, run.entries.has(idOf({ name: mark, n: 0 })) || (run.at >= run.places.length && !run.cancelled));
      return patches.get(mark) && !run.uses.has(mark) ? run.ask("value", mark, { output: true }) : patches.get(mark);
    },
    compensate(name, options, fn) {
      if (typeof options === "function") [options, fn] = [fn ?? {}, options];
      const n = (options.n ?? run.uses.get(name) - 1), e = run.entries.get(idOf({ name, n }));
      if (!e?.asked) throw new Final(`there is no step "${name}" to compensate`);
      run.compensate(e, working(options, fn));
    },
    all(list) {
      const group = new Set([...list].map((p) => run.of.get(p)));
      if (!group.has(undefined)) run.groups.add(group);
      return Promise.all(list).finally(() => run.groups.delete(group));
    },
    race: (list) => Promise.race(list).finally(() => list.forEach((p) => run.drop(run.of.get(p)))),
    log(...words) { if (!run.replaying) run.worker.log(`${run.id}:`, ...words); },
  };
}
