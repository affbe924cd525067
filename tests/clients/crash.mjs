// hapax.test() on an engine in memory: a function that is safe comes to the same end, wherever it is killed; one that is not is found out.
import hapax from "hapax";
const f = hapax.function("checkout", { version: "1" }, async (ctx, { sku }) => {
  const stock = await ctx.step("reserve", () => { throw new Error("the real one"); });
  const paid = await ctx.step("charge", { effect: "claimed" }, () => { throw new Error("the real one"); });
  await ctx.sleep("cooling off", "2d");
  const both = await ctx.all([ctx.step("x", () => 1), ctx.step("y", { effect: "claimed" }, () => 2)]);
  const ok = await ctx.approval("ship it?", { timeout: "1d" });
  const pay = await ctx.event("payment");
  return { stock, paid, both, by: ok.by, pay };
});
const ok = (name, holds, words) => console.log(`${holds ? "ok" : "not ok"} js: ${name}${holds ? "" : "\n# " + words}`);
const it = await hapax.test(f, { input: { sku: "lamp" }, steps: { reserve: () => 4, charge: () => "paid" }, approvals: { "ship it?": { by: "ann" } },
  events: { payment: { amount: 3 } } });
const wanted = { stock: 4, paid: "paid", both: [1, 2], by: "ann", pay: { amount: 3 } };
ok("killed everywhere, the same end", it.status === "COMPLETED" && it.crashes > 8 && JSON.stringify(it.output) === JSON.stringify(wanted), JSON.stringify(it));
let n = 0, words = "nothing was found";
const bad = hapax.function("bad", async (ctx) => { await ctx.step("a", () => 1); return { n: ++n }; });
try { await hapax.test(bad); } catch (error) { words = error.message; }
ok("what differs in a replay is found", /^killed .* its output is/.test(words), words);

// Every order is tried: what the effects of two steps come to, as they should, told by a model of the two workers, against what was seen.
// The first worker's places: the effect of a, before call 1, after it, and the same of b. The second does what is not in the journal by then.
function model() {
  const all = [];
  for (let at = 0; at < 6; at++) {
    const done = "ab".slice(0, Math.ceil(at / 3)).split(""), told = at < 2 ? 0 : at < 5 ? 1 : 2; // executed by the first; in the journal
    const late = { 0: "a", 2: "b", 3: "b" }[at] ?? "", second = ["a", "call", "b", "call"].slice(2 * told), played = (list) => [...done, ...list].filter((x) => x && x !== "call").join("");
    all.push(played(second));
    for (let j = 0; j <= second.length; j++) all.push(played([...second.slice(0, j), late, ...second.slice(j)]));
  }
  return all.sort().join(" ");
}
const seen = [], told = [];
const two = hapax.function("two", async (ctx) => { for (const s of ["a", "b"]) await ctx.step(s, () => { seen.push(s); }); });
const tried = await hapax.test(two, { fresh: () => seen.splice(0), world: () => { told.push(seen.join("")); return null; } });
ok("every order of two workers is tried", tried.exchanges === 2 && tried.crashes === 6 && tried.orders === 26 && told.slice(1).sort().join(" ") === model(),
  JSON.stringify(tried) + told.slice(1).sort().join(" "));

// Mistakes that are planted. A write that is late undoes what came after it: only a worker that goes on after its time shows that.
let status, balance, words2 = {};
const found = async (fn, o) => hapax.test(fn, o).then(() => "nothing", (error) => error.message);
const parcel = hapax.function("parcel", async (ctx) => { for (const s of ["packed", "shipped"]) await ctx.step(s, () => { status = s; }); });
const late = { fresh: () => (status = null), world: () => status };
words2.once = await found(parcel, { ...late, crash: "once" });
words2.late = await found(parcel, late);
ok("a late write is found, and only in the order of two workers", words2.once === "nothing" && /^held before the effect of packed, .* the world/.test(words2.late), JSON.stringify(words2));
const pay = hapax.function("pay", async (ctx) => { await ctx.step("charge", () => { balance -= 10; }); });
const charged = await found(pay, { fresh: () => (balance = 100), world: () => balance, crash: "once" });
ok("a service that does not look at the key is found", /^killed before call 1: it left the world as 80, and 90 without/.test(charged), charged);

// A probe of a service that is not there would know nothing of what the fake has done.
const probing = hapax.function("probing", (ctx) => ctx.step("charge", { effect: "claimed", probe: () => null }, () => "real"));
const probed = await hapax.test(probing, { steps: { charge: () => "fake" }, crash: "once" }).catch((error) => ({ error }));
ok("the probe of a fake step is asked what it has given", probed.output === "fake" && probed.crashes > 3, probed.error?.stack ?? JSON.stringify(probed));

// Children are functions of their own, whose ids are others each time; what they ask a person, the test answers.
const box = hapax.function("box", async (ctx, { n }) => {
  await ctx.step("fold", { effect: "claimed" }, () => n);
  return (await ctx.approval("seal?")).by;
});
const family = hapax.function("family", async (ctx) => ctx.all([0, 1].map((n) => ctx.child(`box ${n}`, box, { n }))));
const grown = await hapax.test(family, { functions: [box], approvals: { "seal?": { by: "ann" } }, crash: "once" }).catch((error) => ({ error }));
ok("children are tested with their parent", JSON.stringify(grown.output) === '["ann","ann"]' && grown.crashes > 8 && grown.effects.join(" ") === "fold fold", grown.error?.stack ?? JSON.stringify(grown));
let taken = 0;
const careless = hapax.function("careless", async (ctx) => { await ctx.step(`once more ${++taken}`, () => 1); });
const parent = hapax.function("parent", async (ctx) => { await ctx.child("it", careless, {}); });
const wrong = await found(parent, { functions: [careless], crash: "once" });
ok("what a child does otherwise each time is found", /^killed .*: (its effects|it ended)/.test(wrong), wrong);

// A worker says whom it asks, and that nobody is there.
const heard = [], lonely = hapax.work({ functions: [box], server: "http://127.0.0.1:1", log: (words) => heard.push(words) });
for (const until = Date.now() + 20000; heard.length < 2 && Date.now() < until; ) await new Promise((done) => setTimeout(done, 20));
await lonely.stop();
ok("a worker says whom it asks, and that nobody answers", heard.join("\n") === "hapax: asks http://127.0.0.1:1 for turns of box 1\nhapax: http://127.0.0.1:1 takes no call, and is asked on: ECONNREFUSED", heard.join("\n"));

// A worker that dies with the very last call of a run is not replaced when the run has ended meanwhile: nobody would ever stop that one.
const { Api } = await import("./node_modules/hapax/client.js"), { call, once } = Api.prototype;
let claims = 0;
Api.prototype.once = function (method, path, ...more) { claims += path === "functions/claim"; return once.call(this, method, path, ...more); };
Api.prototype.call = async function (method, path, body, ...more) {
  if (path === "test-clock" && body.skipMs) await new Promise((done) => setTimeout(done, 500));
  return call.call(this, method, path, body, ...more);
};
await hapax.test(hapax.function("brief", async () => 1));
const pause = (ms) => new Promise((done) => setTimeout(done, ms));
await pause(300);
claims = 0;
await pause(1000);
ok("nobody works on when the test is over", claims === 0, `${claims} claims`);
