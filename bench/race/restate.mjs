// restate.mjs : the service whose handlers Restate calls. order/process has three steps, order/job is one; jobs are held until
// all have been sent (POST /drain with their number to the second address, which answers when they are done).
import * as restate from "@restatedev/restate-sdk";
import { answer, done, serve, step } from "./service.mjs";

let open;
const opened = new Promise((resolve) => (open = resolve));
let wanted = Infinity, finished = () => {};

const order = restate.service({
  name: "order",
  handlers: {
    process: async (ctx, input) => {
      const reservation = await ctx.run("reserve", () => step("reserve", input));
      await ctx.run("charge", () => step("charge", input));
      await ctx.run("ship", () => step("ship", input));
      return { status: "COMPLETED", reservation };
    },
    job: async () => {
      await opened;
      if (++done.jobs >= wanted) finished();
      return { done: true };
    },
  },
});

process.env.RESTATE_LOGGING ??= "ERROR";
const port = await restate.serve({ services: [order], port: 0 });
serve(async (_request, response, text) => {
  const begin = performance.now();
  wanted = Number(text);
  await new Promise((resolve) => {
    finished = resolve;
    if (done.jobs >= wanted) resolve();
    open();
  });
  answer(response, 200, { jobs: done.jobs, drain_seconds: (performance.now() - begin) / 1000 });
}, `service http://127.0.0.1:${port}`);
