// The functions of the conformance script, in JavaScript. functions.py has the same in Python: same names, same order, same outputs.
import http from "node:http";
import hapax, { Final, NotDone } from "hapax";

const [server, name] = process.argv.slice(2);
const post = (path, body) => new Promise((resolve, reject) => {
  const text = JSON.stringify(body);
  http.request(server + path, { method: "POST", headers: { "Content-Length": Buffer.byteLength(text) } }, (answer) => {
    let said = "";
    answer.on("data", (part) => (said += part)).on("end", () => resolve(JSON.parse(said)));
  }).on("error", reject).end(text);
});
const pause = (ms) => new Promise((done) => setTimeout(done, ms));
// What a step does: it is counted by its key.
const act = (step, claimed) => async (key) => { await post("/effect", { step, key, claimed }); return { step }; };
const claimed = { effect: "claimed" };

const functions = {
  async three(ctx) {
    const out = [];
    for (const step of ["a", "b", "c"]) out.push((await ctx.step(step, act(step))).step);
    return { out };
  },
  async claim(ctx, input) {
    const now = await ctx.now(), uuid = await ctx.uuid(), random = await ctx.random();
    const paid = await ctx.step("charge", claimed, act("charge", true));
    await ctx.attribute("customer", input.customer);
    const sent = await ctx.step("send", act("send"));
    return { paid, sent, values: now > 0 && uuid.length === 36 && random < 1, now, uuid };
  },
  async waits(ctx) {
    await ctx.sleep("nap", "2d");
    const event = await ctx.event("paid", { event: "payment", timeout: "1h" });
    const ok = await ctx.approval("ship it?", { timeout: "1d" });
    const child = await ctx.child("pack", "packing", { boxes: 2 });
    return { event, by: ok.by, child };
  },
  async parallel(ctx) {
    const order = [], note = async (p) => { const out = await p; order.push(out.step ?? out.from); return out; };
    const list = [ctx.step("x", act("x")), ctx.step("y", claimed, act("y", true)), ctx.child("z", "packing", {}), ctx.step("w", act("w"))];
    list.forEach(note);
    await ctx.all(list);
    const after = await ctx.step("after", act("after"));
    return { n: order.length, after: after.step, order };
  },
  async race(ctx) {
    const first = await ctx.race([ctx.event("go"), ctx.sleep("limit", "1h")]);
    const after = await ctx.step("after", act("after"));
    return { first, after: after.step };
  },
  async mixed(ctx) {
    const [x, go] = await ctx.all([ctx.step("p", act("p")), ctx.event("go")]);
    const first = await ctx.race([ctx.step("q", act("q")), ctx.event("never")]);
    return { all: [x.step, go.from], first: first.step };
  },
  async loop(ctx) {
    const out = [];
    for (let i = 0; i < 3; i++) out.push((await ctx.step("s", act("s"))).step);
    return { out };
  },
  async twice(ctx) {
    const one = ctx.step("s", act("s"));
    let words;
    try { await ctx.step("s", act("s")); } catch (error) { words = error.message; }
    await one;
    return { refused: /under way/.test(words) };
  },
  async retried(ctx) {
    const s = await ctx.step("s", async (key, { attempt }) => { await act("s")(key); if (attempt < 3) throw new Error("not yet"); return { attempt }; });
    const t = await ctx.step("t", claimed, async (key, { attempt }) => { await act("t", true)(key); if (attempt < 2) throw new NotDone("busy"); return { attempt }; });
    return { s, t };
  },
  async refused(ctx) {
    await ctx.step("s", act("s"));
    await ctx.step("card", async (key) => { await act("card")(key); throw new Final("card declined"); });
  },
  async caught(ctx) {
    try { await ctx.event("never", { timeout: "1s" }); } catch (error) { return { code: error.code, step: error.step }; }
  },
  async rejected(ctx) {
    try { await ctx.approval("ok?"); } catch (error) { return { code: error.code, by: error.by }; }
  },
  async undone(ctx) {
    await ctx.step("one", { compensate: (out, key) => act("undo one " + out.step)(key) }, act("one"));
    await ctx.step("two", act("two"));
    ctx.compensate("two", (out, key) => act("undo two " + out.step)(key));
    await ctx.step("three", act("three"));
    await ctx.event("go");
    await ctx.step("four", act("four"));
    return {};
  },
  async unhappy(ctx) {
    await ctx.step("one", { compensate: (out, key) => act("undo one")(key) }, act("one"));
    await ctx.step("two", { compensate: () => { throw new Final("no way back"); } }, act("two"));
    await ctx.event("go");
  },
  async fails(ctx) {
    await ctx.step("one", { compensate: (out, key) => act("undo one")(key) }, act("one"));
    throw new Final("no");
  },
  async diverges(ctx) {
    await ctx.step("a", act("a"));
    await ctx.step("b", act("b"));
    return {};
  },
  async probed(ctx, input) {
    const out = await ctx.step("charge", { effect: "claimed", onUnknown: "probe", probe: () => (input.found ? { step: "found" } : null) }, act("charge", true));
    return { out };
  },
  async outrun(ctx, input) {
    const probe = () => (input.found ? { step: "found" } : null);
    return { first: await ctx.race([ctx.event("go"), ctx.step("charge", { effect: "claimed", probe }, act("charge", true))]) };
  },
  async between(ctx) {
    await ctx.step("one", { compensate: (out, key) => act("undo one " + out.step)(key) }, act("one"));
    await ctx.child("pack", "packing", {});
    await ctx.step("two", { compensate: (out, key) => act("undo two " + out.step)(key) }, act("two"));
    await ctx.event("stop");
  },
  async doubtful(ctx, input) {
    const probe = input.probe && (() => { if (input.probe === "broken") throw new Error("no answer"); return input.probe === "found" ? { step: "found" } : null; });
    const out = await ctx.step("charge", { effect: "claimed", ...(probe && { probe }) }, async (key, { attempt }) => {
      await act("charge", true)(key);
      if (attempt === 1) throw new Error("connection reset");
      return { attempt };
    });
    return { out };
  },
  async long(ctx, { ms = 6000 }) {
    const out = await ctx.step("long", claimed, async (key) => { await pause(ms); return act("long", true)(key); });
    return { out };
  },
  async patched(ctx) {
    await ctx.step("a", act("a"));
    const isNew = await ctx.patched("better");
    await ctx.step(isNew ? "b2" : "b", act("b"));
    return { isNew };
  },
  async foreign(ctx) { // waits for something of its own
    await pause(20);
    const out = await ctx.step("a", act("a"));
    await pause(20);
    await ctx.sleep("nap", "1s");
    await pause(20);
    return { out };
  },
  async order(ctx) { // what ends in which order is the same in each replay
    const order = [], note = async (p, name) => { await p; order.push(name); };
    const e = ctx.event("e"), s = ctx.sleep("s", "1s"), a = ctx.step("a", act("a")), b = ctx.step("b", act("b"));
    for (const [p, name] of [[e, "e"], [s, "s"], [a, "a"], [b, "b"]]) note(p, name);
    await ctx.race([e, s]);
    await ctx.all([a, b]);
    await ctx.step("tell", act("tell " + order.join("")));
    await ctx.sleep("again", "1s");
    await ctx.step("tell", act("tell " + order.join("")));
    return { order };
  },
  async branches(ctx) {
    const branch = async (x) => {
      await ctx.step("first " + x, act("first " + x));
      await ctx.sleep("nap " + x, "1s");
      return (await ctx.step("second " + x, act("second " + x))).step;
    };
    return { out: await ctx.all([branch("a"), branch("b")]) };
  },
  async overlap(ctx) { // a step that is asked for while another one is being executed
    const quick = async () => {
      await ctx.step("quick", act("quick"));
      return (await ctx.step("second", claimed, act("second", true))).step;
    };
    const slow = ctx.step("slow", async (key) => { await pause(1000); return act("slow")(key); });
    const [a, { step }] = await Promise.all([quick(), slow]);
    return { out: [a, step] };
  },
  async rejoined(ctx) {
    await ctx.sleep("nap", "1s");
    const out = await ctx.all([ctx.step("a", act("a")), ctx.step("b", act("b"))]);
    return { out: out.map(({ step }) => step) };
  },
  async fan(ctx, { n }) {
    const out = await ctx.all(Array.from({ length: n }, (_, i) => ctx.child(`c ${i}`, "packing")));
    return { n: out.length };
  },
  async large(ctx) { // there is no room for what they give
    const out = await ctx.step("keyed", async (key) => { await act("keyed")(key); return "x".repeat(2e6); });
    const paid = await ctx.step("charge", claimed, async (key) => { await act("charge", true)(key); return "x".repeat(2e6); });
    return { out: [out.step, paid.step] };
  },
  async many(ctx, { n, naps }) {
    for (let i = 0; i < n; i++) await ctx.step("s", act("s"));
    for (let i = 0; i < naps; i++) await ctx.sleep("nap", "1s");
    return { n };
  },
};
const worker = hapax.work({ server, worker: name, lease: "5s", concurrency: 64, timeout: "1s", log: () => {},
  functions: Object.entries(functions).map(([name, code]) => hapax.function(name, { version: "1" }, code)) });
process.on("SIGTERM", () => worker.stop());
await worker;
