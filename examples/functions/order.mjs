// The order of examples/order as a function: goods, perhaps a person, a payment, a pause. Its steps happen once; see README.md.
import { mkdirSync, writeFileSync } from "node:fs";
import hapax, { Final } from "hapax";

// The outside world: a folder with a file for each key. The same key again changes nothing.
const ledger = process.argv[2] || "ledger";
mkdirSync(ledger, { recursive: true });
const effect = (key, words) => {
  try { writeFileSync(`${ledger}/${key.replaceAll("/", ".")}`, words + "\n", { flag: "wx" }); } catch (error) { if (error.code !== "EEXIST") throw error; }
};
const reserve = (sku, key) => {
  if (sku.startsWith("no-")) throw new Final(`there is no ${sku.slice(3)} on the shelves`);
  effect(key, "reserve " + sku);
  return { shelf: sku.length };
};

const order = hapax.function("order", { version: "1" }, async (ctx, { sku, total }) => {
  const { shelf } = await ctx.step("reserve", { compensate: (_, key) => effect(key, "release " + sku) }, (key) => reserve(sku, key));
  const ok = total > 1000 ? await ctx.approval("approve", { timeout: "24h" }) : null;
  const payment = await ctx.event("paid", { event: "payment", timeout: "1h" });
  await ctx.sleep("cooldown", "2s");
  return { shelf, paid: payment.amount, approved_by: ok?.by ?? "nobody" };
});

const worker = hapax.work({ functions: [order], lease: "5s" });
process.on("SIGTERM", () => worker.stop());
await worker;
