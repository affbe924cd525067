// Tests of functions: a function is run against an engine in memory, with fakes for its steps, and with time that is skipped whenever nothing
// but time is waited for. Then it is run once more for each order of two workers. The first one stands still at one of its places: just before
// an effect, before a call of the journal, or after one that was taken; its lease ends, and the second one goes on. Either the first has died
// there; or it goes on as well, when the second has come to one of its own places, or to the end. All come to the same end, with each effect once.
import { spawn } from "node:child_process";
import { Api, connect, encode, sleep } from "./client.js";
import { work } from "./index.js";

const LEASE = 10000, KILLED = -1;

class Stage {
  constructor({ at, wakes = KILLED } = {}, lapse) {
    Object.assign(this, { at, wakes, lapse, places: [[], []], rest: () => {} });
    this.resting = new Promise((done) => (this.rest = done));
  }
  async pass(who, place) { // a worker comes to one of its places
    if (who === 0) {
      if (this.places[0].push(place) - 1 === this.at && !this.over) this.hold();
      await this.standing;
      if (this.standing && place.claimed) throw new Error("its lease is over"); // whoever decided about it was sure of that
    } else if (!place.heard && this.places[1].push(place) - 1 === this.wakes) await this.wake();
  }
  hold() {
    this.standing = new Promise((go, no) => Object.assign(this, { go, kill: () => no(new Error("killed")) }));
    this.standing.catch(() => {});
    this.lapse();
  }
  async wake() { // and the other one waits until it has come to its end: it is refused
    this.go?.();
    await Promise.race([this.resting, sleep(1000)]);
  }
}

class StagedApi extends Api {
  constructor(place, stage, who) { super(place); Object.assign(this, { stage, who, calls: 0 }); }
  async once(method, path, ...more) {
    if (this.who === 0 && this.stage.standing) {
      if (path === "functions/claim") return sleep(20).then(() => ({ status: 200, body: { turns: [] } }));
      await this.stage.standing;
    }
    return super.once(method, path, ...more);
  }
  async text(method, path, text, how) {
    if (method === "GET") return super.text(method, path, text, how);
    const { stage, who } = this, n = ++this.calls;
    try {
      await stage.pass(who, { name: `before call ${n}`, call: n });
      const answer = await super.text(method, path, text, how);
      await stage.pass(who, { name: `after call ${n}`, heard: true });
      if (JSON.parse(text).end && who === 0 && stage.standing) stage.rest();
      return answer;
    } catch (error) {
      if (who === 0) stage.rest();
      throw error;
    }
  }
}

async function serve(program) {
  const engine = spawn(program, ["serve", "--db", "sqlite::memory:", "--test-clock", "--listen", "127.0.0.1:0"], { stdio: ["ignore", "pipe", "ignore"] });
  const server = await new Promise((ready, no) => {
    engine.once("error", no).once("exit", (code) => no(new Error(`${program} serve ended with ${code}`)));
    engine.stdout.on("data", (words) => { const at = /^ready (\S+)/m.exec(words); if (at) ready(at[1]); });
  });
  return { server, stop: () => engine.kill() };
}

let plays = 0;
async function play(server, fn, o, order) {
  const place = { server, workspace: `play-${++plays}` }, client = connect(place), effects = [], outputs = new Map(), workers = [];
  const skip = (by) => client.call("POST", "test-clock", by);
  const stage = new Stage(order, () => (stage.lapsed = skip({ skipMs: LEASE }).then(() => stage.over || add(1)))); // nobody takes its place when all is over
  const fakes = (who) => (name, work) => {
    const { effect } = work, fake = o.steps?.[name], execute = fake ?? work.fn;
    if (fake && work.probe) work.probe = (key) => (outputs.has(key) ? outputs.get(key) ?? true : null); // the real one knows nothing of it
    work.fn = async (key, more) => {
      await stage.pass(who, { name: `before the effect of ${name}`, claimed: effect === "claimed" });
      effects.push({ name, key, effect });
      const out = await execute(key, more);
      outputs.set(key, out);
      return out;
    };
  };
  const add = (who) => workers.push(work({ functions: [...new Set([fn, ...(o.functions ?? [])])], api: new StagedApi(place, stage, who), fakes: fakes(who), lease: LEASE,
    concurrency: who ? 16 : 1, log: () => {} })); // the first one has no claim under way that could get its own turn again
  add(0);
  try {
    o.fresh?.();
    let run, sent = new Set();
    for (const until = Date.now() + 10000; !run; ) // a name can be started as soon as it is polled for
      try { run = await client.start(fn, o.input ?? {}); } catch (error) { if (Date.now() > until) throw error; await sleep(5); }
    for (const [event, data] of Object.entries(o.events ?? {})) await client.signal(run.id, event, data);
    for (const until = Date.now() + (o.timeout ?? 30000); ; await sleep(5)) {
      run = await client.show(run.id);
      if (["COMPLETED", "FAILED", "CANCELLED"].includes(run.status)) break;
      if (Date.now() > until) throw new Error(`${run.id} is ${run.status} at ${run.currentStep}`);
      let acted = run.status !== "WAITING";
      const tree = [run];
      if (run.steps.some(({ kind, status }) => kind === "child" && status === "WAITING")) // the workspace is this play's alone
        for (const { id, parent } of (await client.list({ limit: 500 })).items) if (parent) tree.push(await client.show(id));
      for (const { id, status: stands, steps } of tree) for (const { name, status } of steps) {
        const [, base, n] = /^(.*?)(?:#(\d+))?$/s.exec(name), key = `${id}/${encode(base)}/${n ?? 0}`;
        if (status === "WAITING" && o.approvals?.[name] && !sent.has(key)) {
          acted = true;
          await client.approve(id, name, o.approvals[name]).then(() => sent.add(key), () => {});
        }
        if (status !== "UNKNOWN" || stands !== "WAITING") continue; // a worker is to find out about it
        acted = true; // the test is the person who knows
        await client.resolve(id, name, outputs.has(key) ? { outcome: "done", output: outputs.get(key) ?? null } : { outcome: "not_done" }).catch(() => {});
      }
      if (!acted) await skip({ toNext: true });
    }
    stage.over = true; // from here on nobody stands still
    await stage.lapsed;
    if (stage.wakes >= stage.places[1].length) await stage.wake();
    return { ...run, effects, places: stage.places, world: JSON.stringify(o.world?.()) };
  } finally {
    stage.over = true;
    await stage.lapsed;
    stage.kill?.();
    await Promise.all(workers.map((worker) => worker.stop()));
    client.close();
  }
}

function compare(it, plain, o, where) {
  const named = (r, key) => key.replace(r.id, "RUN").replace(/^run_[0-9a-z]+/, "CHILD"); // ids are other ones each time
  const keys = (r) => [...new Set(r.effects.map(({ key }) => key))].map((key) => named(r, key)).sort().join(" ");
  const claimed = it.effects.filter(({ effect }) => effect === "claimed").map(({ key }) => key);
  const differs = (what, a, b) => { if (a !== b) throw new Error(`${where}: ${what} ${a}, and ${b} without`); };
  differs("it ended as", it.status, plain.status);
  if (!o.loose) differs("its output is", JSON.stringify(it.output), JSON.stringify(plain.output));
  differs("its effects were", keys(it), keys(plain));
  differs("claimed steps were executed", claimed.length, new Set(claimed).size);
  differs("it left the world as", it.world, plain.world);
}

export async function test(fn, o = {}) {
  const engine = await serve(o.hapax ?? process.env.HAPAX ?? "hapax");
  try {
    const plain = await play(engine.server, fn, o), [places] = plain.places, all = o.crash === false ? [] : places;
    let crashes = 0, orders = 0;
    for (const [at, place] of all.entries()) { // one after the other: time is skipped for all
      const dead = await play(engine.server, fn, o, { at });
      compare(dead, plain, o, `killed ${place.name}`);
      crashes++, orders++;
      const others = place.claimed || o.crash === "once" ? [] : [...dead.places[1], { name: "the end" }]; // where the first one may go on
      for (const [wakes, other] of others.entries()) {
        compare(await play(engine.server, fn, o, { at, wakes }), plain, o, `held ${place.name}, and on again at the second worker's ${other.name}`);
        orders++;
      }
    }
    const { status, output, error } = plain;
    return { status, output, error, effects: plain.effects.map(({ name }) => name), exchanges: places.filter(({ call }) => call).length, crashes, orders };
  } finally { engine.stop(); }
}
