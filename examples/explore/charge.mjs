// A classic mistake: the step is keyed, since nothing else is said, so it is tried again after a crash; and the key that would let the
// provider see that it is the same charge is not sent. `hapax explore --worker` finds it (docs/explore.md); charge.mended.mjs is mended.
import hapax from "hapax";

const provider = process.env.PROVIDER ?? "http://127.0.0.1:9100/charge";

const checkout = hapax.function("checkout", async (ctx) => {
  await ctx.step("charge", async () => (await fetch(provider, { method: "POST" })).json());
  await ctx.sleep("cooling off", "2d");
  return { paid: true };
});

await hapax.work({ functions: [checkout] });
