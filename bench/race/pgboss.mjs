// pgboss.mjs : pg-boss, whose workers fetch again at once while what they fetch is full.
import { PgBoss } from "pg-boss";
import { drain, pieces } from "./drain.mjs";

await drain(async () => {
  const boss = new PgBoss({ connectionString: process.env.RACE_PG, max: 20 });
  boss.on("error", (error) => console.error(String(error)));
  await boss.start();
  await boss.createQueue("jobs");
  return {
    push: async (n) => {
      for (const piece of pieces(n)) await boss.insert("jobs", piece.map((data) => ({ data })));
    },
    work: (handle) =>
      boss.work("jobs", { batchSize: 100, localConcurrency: 4, pollingIntervalSeconds: 0.5, burstWhenBatchFull: true },
        async (jobs) => handle(jobs.length)),
    close: () => boss.stop({ graceful: true }),
  };
});
