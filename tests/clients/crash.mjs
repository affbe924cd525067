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
