// A worker in ten lines of JavaScript. One that outlives its engine, and shows what a fence is for: ../order/worker.js
const jobs = (process.env.HAPAX_SERVER || "http://127.0.0.1:7411") + "/api/v1/jobs/";
const ask = async (path, body) => (await fetch(jobs + path, { method: "POST", body: JSON.stringify(body) })).json();
(async function work() {
  for (const job of (await ask("claim", { queues: ["hello"], owner: "node", max: 10, leaseMs: 30000, waitMs: 20000 })).jobs)
    try { await ask(job.id + "/complete", { owner: "node", fence: job.fence, output: "hello " + job.payload.name.trim() }); }
    catch (problem) { await ask(job.id + "/fail", { owner: "node", fence: job.fence, error: String(problem) }); }
  work();
})();
