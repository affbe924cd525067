// restate.mjs : the service whose handlers Restate calls. order/process has three steps, order/job is one; jobs are held until
// all have been sent (POST /drain with their number to the second address, which answers when they are done).
import http2 from "node:http2";
import * as restate from "@restatedev/restate-sdk";
import { answer, done, serve, step } from "./service.mjs";

let open;
const opened = new Promise((resolve) => (open = resolve));
let entered = 0, wanted = Infinity, finished = () => {};

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
      entered++;
      await opened;
      if (++done.jobs >= wanted) finished();
      return { done: true };
    },
  },
});

// Those that were in a handler already when it was opened had been brought there before: they are not counted.
async function drain(_request, response, text) {
  const begin = performance.now(), early = entered;
  wanted = Number(text);
  await new Promise((resolve) => {
    finished = resolve;
    open();
    if (done.jobs >= wanted) resolve();
  });
  answer(response, 200, { jobs: wanted - early, drain_seconds: (performance.now() - begin) / 1000 });
}

const endpoint = http2.createServer(restate.createEndpointHandler({ services: [order] }));
endpoint.listen(0, "127.0.0.1", () => serve(drain, `service http://127.0.0.1:${endpoint.address().port}`));
