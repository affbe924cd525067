// function.mjs SERVER CLIENT : one worker for the function "order", whose three steps are code here, as they are for Restate. CLIENT is the
// folder of our client. Says "ready" when the engine knows the function.
import { pathToFileURL } from "node:url";
import { serve, step, stopWith } from "./service.mjs";

const [server, client] = process.argv.slice(2);
const hapax = await import(pathToFileURL(`${client}/index.js`));

const order = hapax.function("order", { version: "1" }, async (ctx, input) => {
  const reservation = await ctx.step("reserve", () => step("reserve", input));
  await ctx.step("charge", () => step("charge", input));
  await ctx.step("ship", () => step("ship", input));
  return { reservation };
});
const worker = hapax.work({ server, functions: [order], concurrency: 256 });
stopWith(() => worker.stop());

const known = hapax.connect({ server });
// Whoever starts it before the worker's first poll is there is told that there is no such function.
const first = (tries) => known.start("order", { sku: "first" }).catch(async (error) => {
  if (error.status !== 404 || !tries) throw error;
  await new Promise((go) => setTimeout(go, 50));
  return first(tries - 1);
});
await known.result((await first(200)).id);
serve(() => {});
