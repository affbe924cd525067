// graphile.mjs : graphile-worker, with the settings of its own page on performance.
import { makeWorkerUtils, run } from "graphile-worker";
import { drain, pieces } from "./drain.mjs";

const quiet = { log() {} };
const connectionString = process.env.RACE_PG;
const preset = { worker: { connectionString, concurrentJobs: 24, maxPoolSize: 25, localQueue: { size: 500 },
  completeJobBatchDelay: 0, failJobBatchDelay: 0 } };

await drain(async () => {
  const { Logger } = await import("graphile-worker");
  const logger = new Logger(() => () => quiet.log());
  const utils = await makeWorkerUtils({ connectionString, logger });
  await utils.migrate();
  let runner;
  return {
    push: async (n) => {
      for (const piece of pieces(n)) await utils.addJobs(piece.map((payload) => ({ identifier: "job", payload })));
    },
    work: async (handle) => {
      runner = await run({ preset, logger, noHandleSignals: true, taskList: { job: async () => handle() } });
    },
    close: async () => {
      await runner.stop();
      await utils.release();
    },
  };
});
