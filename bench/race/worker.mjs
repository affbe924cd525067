// worker.mjs : workers of Hapax in Node, over its HTTP API, as the peers' workers are in Node.
//   node worker.mjs ADDRESS WORKERS JOBS QUEUE   claims up to 100 jobs in a request, completes each; prints one line of JSON
import http from "node:http";
import { done } from "./service.mjs";

const [, , address, workers, jobs, queue] = process.argv;
const [host, port] = address.split(":");
const agent = new http.Agent({ keepAlive: true, maxSockets: Number(workers) });

function post(path, value) {
  return new Promise((resolve, reject) => {
    const body = JSON.stringify(value);
    const request = http.request({ host, port, path, method: "POST", agent,
      headers: { "content-type": "application/json", "content-length": Buffer.byteLength(body) } }, (response) => {
      let text = "";
      response.setEncoding("utf8");
      response.on("data", (part) => (text += part));
      response.on("end", () => (response.statusCode < 300 ? resolve(JSON.parse(text || "null")) : reject(new Error(text))));
    });
    request.on("error", reject);
    request.end(body);
  });
}

async function work(owner) {
  while (done.jobs < Number(jobs)) {
    const claimed = await post("/api/v1/jobs/claim", { queues: [queue], owner, max: 100, waitMs: 200 });
    for (const { id, fence } of claimed.jobs) {
      await post(`/api/v1/jobs/${id}/complete`, { owner, fence });
      done.jobs++;
    }
  }
}

const begin = performance.now();
await Promise.all(Array.from({ length: Number(workers) }, (_, i) => work(`node-${i}`)));
console.log(JSON.stringify({ jobs: done.jobs, drain_seconds: (performance.now() - begin) / 1000 }));
process.exit(0);
