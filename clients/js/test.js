// Tests of functions: a function is run against an engine in memory, with fakes for its steps, and with time that is skipped whenever nothing
// but time is waited for; and then once more for each of its calls of the journal, with a worker that dies just before it was sent, or just after it was taken. It has to
// come to the same end, with each effect once.
import { spawn } from "node:child_process";
import { Api, connect, sleep } from "./client.js";
import { work } from "./index.js";

class MortalApi extends Api { // its worker dies at the k-th call: from then on it says and hears nothing
  constructor(o, crash) { super(o); Object.assign(this, { crash, calls: 0, died: new Promise((done) => (this.die = done)) }); }
  never() { this.dead = true; this.die(); return new Promise(() => {}); }
  once(...all) { return this.dead ? this.never() : super.once(...all); }
  async text(method, path, ...more) {
    const hit = path.endsWith("/journal") && method === "POST" && ++this.calls === this.crash?.at;
    if (this.dead || (hit && this.crash.when === "before")) return this.never();
    const answer = await super.text(method, path, ...more);
    return hit ? this.never() : answer;
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

async function play(server, fn, o, crash) {
  const place = { server, workspace: crash ? `crash-${crash.at}-${crash.when}` : "plain" }, client = connect(place), effects = [], outputs = new Map();
  const fakes = (name, real, effect) => async (key, more) => {
    effects.push({ name, key, effect });
    const out = await (o.steps?.[name] ?? real)(key, more);
    outputs.set(key, out);
    return out;
  };
  const worker = (api) => work({ functions: o.functions ?? [fn], api, fakes, lease: "2s", log: () => {} });
  const api = new MortalApi(place, crash), workers = [worker(api)];
  const skip = (by) => client.call("POST", "test-clock", by);
  let over = false; // then nobody takes the place of a worker that dies with its last call
  const replaced = api.died.then(async () => {
    workers[0].stop();
    if (!over) await skip({ skipMs: 2000 }); // its lease is over
    if (!over) workers.push(worker(new MortalApi(place)));
  });
  try {
    let run, sent = new Set();
    for (const until = Date.now() + 10000; !run; ) // a name can be started as soon as it is polled for
      try { run = await client.start(fn, o.input ?? {}); } catch (error) { if (Date.now() > until) throw error; await sleep(20); }
    for (const [event, data] of Object.entries(o.events ?? {})) await client.signal(run.id, event, data);
    for (const until = Date.now() + (o.timeout ?? 30000); ; await sleep(20)) {
      run = await client.show(run.id);
      if (["COMPLETED", "FAILED", "CANCELLED"].includes(run.status)) break;
      if (Date.now() > until) throw new Error(`${run.id} is ${run.status} at ${run.currentStep}`);
      let acted = run.status !== "WAITING";
      for (const { name, status } of run.steps) {
        const key = `${run.id}/${encodeURIComponent(name.replace(/#\d+$/, ""))}/${/#(\d+)$/.exec(name)?.[1] ?? 0}`;
        if (status === "WAITING" && o.approvals?.[name] && !sent.has(name)) acted = true, await client.approve(run.id, name, o.approvals[name]).then(() => sent.add(name), () => {});
        acted ||= status === "UNKNOWN";
        if (status === "UNKNOWN") // the test is the person who knows
          await client.resolve(run.id, name, outputs.has(key) ? { outcome: "done", output: outputs.get(key) ?? null } : { outcome: "not_done" }).catch(() => {});
      }
      if (!acted) await skip({ toNext: true });
    }
    return { id: run.id, status: run.status, output: run.output, error: run.error, effects, calls: api.calls };
  } finally {
    over = true;
    await Promise.race([workers[0].stop(), replaced]); // one that has died never says that it has stopped
    await Promise.all(workers.slice(1).map((w) => w.stop()));
    client.close();
  }
}

export async function test(fn, o = {}) {
  const engine = await serve(o.hapax ?? process.env.HAPAX ?? "hapax");
  try {
    const plain = await play(engine.server, fn, o, null), crashes = [];
    for (let at = 1; at <= plain.calls && o.crash !== false; at++) for (const when of ["before", "after"]) crashes.push({ at, when });
    const keys = (r) => [...new Set(r.effects.map(({ key }) => key.replace(r.id, "RUN")))].sort().join(" ");
    for (const crash of crashes) { // one after the other: time is skipped for all
      const it = await play(engine.server, fn, o, crash), where = `killed ${crash.when} call ${crash.at}`;
      const differs = (what, a, b) => { if (a !== b) throw new Error(`${where}: ${what} ${a}, and ${b} without`); };
      differs("it ended as", it.status, plain.status);
      if (!o.loose) differs("its output is", JSON.stringify(it.output), JSON.stringify(plain.output));
      differs("its effects were", keys(it), keys(plain));
      const claimed = it.effects.filter(({ effect }) => effect === "claimed").map(({ key }) => key);
      differs("claimed steps were executed", claimed.length, new Set(claimed).size);
    }
    return { status: plain.status, output: plain.output, error: plain.error, effects: plain.effects.map(({ name }) => name), crashes: crashes.length };
  } finally { engine.stop(); }
}
