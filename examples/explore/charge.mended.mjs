// The twin of charge.mjs: the provider gets the key, and does a second try of the same charge no second time.
import hapax from "hapax";

const provider = process.env.PROVIDER ?? "http://127.0.0.1:9100/charge";

const checkout = hapax.function("checkout", async (ctx) => {
  await ctx.step("charge", async (key) => (await fetch(provider, { method: "POST", headers: { "Idempotency-Key": key } })).json());
  await ctx.sleep("cooling off", "2d");
  return { paid: true };
});

await hapax.work({ functions: [checkout] });
