#!/usr/bin/env node
// A worker in a few lines of JavaScript, without packages: claims jobs by long poll, does them, says how it went.
//   worker.js LEDGER        HAPAX_SERVER says where the engine is
const fs = require("fs");

// The effect: a file for each key, which can be made only once. That is what "effect": "keyed" promises.
function work(job) {
  const sku = job.payload.input.sku;
  if (sku.startsWith("no-")) throw new RangeError(`there is no ${sku.slice(3)} on the shelves`);
  console.log(job.queue, sku, "attempt", job.attempt, "fence", job.fence);
  try {
    fs.writeFileSync(`${process.argv[2]}/${job.idempotencyKey.replaceAll("/", ".")}`, `${job.queue} ${sku}\n`, { flag: "wx" });
  } catch (problem) {
    if (problem.code !== "EEXIST") throw problem;
    console.log("  was done before");
  }
  return { shelf: sku.length };
}

// The worker itself.
async function ask(path, body) {
  const url = (process.env.HAPAX_SERVER || "http://127.0.0.1:7411") + "/api/v1/jobs/" + path;
  try {
    const answer = await fetch(url, { method: "POST", body: JSON.stringify(body) });
    if (answer.ok) return await answer.json();
    throw new Error(`${answer.status} ${(await answer.json()).code}`);
  } catch (problem) { // the engine is away, or the job is another's by now: claiming again heals both
    console.log(path.split("/").pop() + ":", problem.message);
    await new Promise((resume) => setTimeout(resume, 1000));
    return { jobs: [] };
  }
}

(async () => {
  for (;;) {
    const claim = { queues: ["reserve", "release"], owner: "node", max: 1, leaseMs: 3000, waitMs: 20000 };
    for (const job of (await ask("claim", claim)).jobs) {
      const mine = { owner: "node", fence: job.fence };
      try {
        await ask(job.id + "/complete", { ...mine, output: work(job) });
      } catch (problem) {
        await ask(job.id + "/fail", { ...mine, error: problem.message, retryable: !(problem instanceof RangeError) });
      }
    }
  }
})();
