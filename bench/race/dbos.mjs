// dbos.mjs : DBOS Transact, a library in the service's own process; its checkpoints are in PostgreSQL.
//
//   node dbos.mjs serve     POST / with an Idempotency-Key is a workflow of three steps with that id, and is answered at its end
//   node dbos.mjs drain N   N workflows of one step in a queue, enqueued while nobody works, then worked off
//   node dbos.mjs idle
import { DBOS, DBOSClient } from "@dbos-inc/dbos-sdk";
import { drain } from "./drain.mjs";
import { answer, serve, step, stopWith } from "./service.mjs";

const systemDatabaseUrl = process.env.RACE_PG;
let handled = () => {};

const order = DBOS.registerWorkflow(async (input) => {
  const reservation = await DBOS.runStep(async () => step("reserve", input), { name: "reserve" });
  await DBOS.runStep(async () => step("charge", input), { name: "charge" });
  await DBOS.runStep(async () => step("ship", input), { name: "ship" });
  return { status: "COMPLETED", reservation };
}, { name: "order" });
DBOS.registerWorkflow(async () => handled(), { name: "job" });
DBOS.setConfig({ name: "race", systemDatabaseUrl, logLevel: "error", applicationVersion: "race" });

// A queue of DBOS is worked off by whoever is launched, so jobs are enqueued by a client before that.
async function openQueue() {
  const client = await DBOSClient.create({ systemDatabaseUrl });
  return {
    push: async (n) => {
      for (let i = 0; i < n; i += 64)
        await Promise.all(Array.from({ length: Math.min(64, n - i) }, (_, j) =>
          client.enqueue({ queueName: "jobs", workflowName: "job", appVersion: "race" }, { n: i + j })));
    },
    work: async (handle) => {
      handled = handle;
      await DBOS.registerQueue("jobs", { workerConcurrency: 100, minPollingIntervalMs: 100 });
    },
    close: async () => {
      await client.destroy();
      await DBOS.shutdown();
    },
  };
}

await DBOS.launch();
if (process.argv[2] === "serve") {
  serve(async (request, response, text) => {
    const handle = await DBOS.startWorkflow(order, { workflowID: request.headers["idempotency-key"] })(JSON.parse(text));
    answer(response, 200, await handle.getResult());
  });
  stopWith(() => DBOS.shutdown());
} else {
  await drain(openQueue);
}
