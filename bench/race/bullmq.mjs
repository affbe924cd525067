// bullmq.mjs : BullMQ on a Redis that syncs each write (appendfsync always, noeviction).
import { Queue, Worker } from "bullmq";
import { drain, pieces } from "./drain.mjs";

const url = new URL(process.env.RACE_REDIS);
const connection = { host: url.hostname, port: Number(url.port), password: url.password, maxRetriesPerRequest: null };
const name = `race-${process.pid}`;

await drain(async () => {
  const queue = new Queue(name, { connection, defaultJobOptions: { removeOnComplete: true, removeOnFail: 1000 } });
  await queue.waitUntilReady();
  let worker;
  return {
    push: async (n) => {
      for (const piece of pieces(n)) await queue.addBulk(piece.map((data) => ({ name: "job", data })));
    },
    work: async (handle) => {
      worker = new Worker(name, async () => ({ done: true }), { connection, concurrency: 50 });
      worker.on("completed", () => handle());
      await worker.waitUntilReady();
    },
    close: async () => {
      await worker.close();
      await queue.obliterate({ force: true });
      await queue.close();
    },
  };
});
