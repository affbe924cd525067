// service.mjs : what all peers share: a small HTTP server on a free port of 127.0.0.1 that says "ready", and a count of what was
// done, by which race.py checks that everybody did the same work. Run by itself it is the service whose three steps an engine
// calls over HTTP, and which stands after the gate: it answers every POST.
import http from "node:http";
import { fileURLToPath } from "node:url";

export const done = { steps: 0, jobs: 0 };

export function step(name, input) {
  done.steps++;
  return { name, sku: input?.sku ?? null, receipt: `r-${done.steps}` };
}

export function read(request) {
  return new Promise((resolve, reject) => {
    let text = "";
    request.setEncoding("utf8");
    request.on("data", (part) => (text += part));
    request.on("end", () => resolve(text));
    request.on("error", reject);
  });
}

export function answer(response, status, value, fields = {}) {
  const body = typeof value === "string" ? value : JSON.stringify(value);
  response.writeHead(status, { "content-type": "application/json", "content-length": Buffer.byteLength(body), ...fields });
  response.end(body);
}

// `post` is asked for each POST; GET /count tells what was done. `words` are said after "ready" and the address.
export function serve(post, words = "") {
  const server = http.createServer({ keepAliveTimeout: 120000 }, async (request, response) => {
    try {
      if (request.method === "GET") answer(response, 200, done);
      else await post(request, response, await read(request));
    } catch (error) {
      answer(response, 500, { error: String(error) });
    }
  });
  server.listen({ port: 0, host: "127.0.0.1", backlog: 1024 }, () => {
    console.log(`ready http://127.0.0.1:${server.address().port} ${words}`.trim());
  });
  return server;
}

export function stopWith(end) {
  for (const signal of ["SIGTERM", "SIGINT"])
    process.on(signal, async () => {
      await end();
      process.exit(0);
    });
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  serve((request, response, text) => answer(response, 200, step(request.url, JSON.parse(text || "{}").input)));
  stopWith(() => {});
}
