// A function: its steps are code, and each of them is done once, wherever the program that does them is stopped.
import { appendFileSync } from "node:fs";
import hapax from "./hapax/index.js";

// The outside world: a file, for a start. The key is the same each time that a step is tried: services take it as their Idempotency-Key.
const effect = (key, words) => { appendFileSync("effects.log", `${key} ${words}\n`); return words; };

export const order = hapax.function("order", { version: "1" }, async (ctx, { item, total }) => {
  ctx.attribute("item", item); // hapax run list --where 'item == "lamp"'
  await ctx.step("reserve", { compensate: (_, key) => effect(key, `put ${item} back`) }, (key) => effect(key, `reserve ${item}`));
  const approved = total > 100 ? await ctx.approval("approve", { timeout: "1d" }) : null;
  await ctx.sleep("rest", "2s"); // or "2d": no process waits
  const paid = await ctx.step("charge", { effect: "claimed" }, (key) => effect(key, `charge ${total}`)); // never twice: see the README
  return { paid, approved_by: approved?.by ?? "nobody" };
});
