// drain.mjs : how a job queue is measured. A peer gives { push(n), work(handler), close() }: push puts n jobs into the queue, work
// begins to take them and calls the handler for each, or for several at once.
//
//   node PEER.mjs drain N   pushes N jobs while nobody works, then works them off; prints one line of JSON
//   node PEER.mjs idle      works on an empty queue, says "ready", and waits for SIGTERM
import { done, stopWith } from "./service.mjs";

export async function drain(open) {
  const [, , how, count] = process.argv;
  const peer = await open();
  if (how === "idle") {
    await peer.work(() => {});
    stopWith(peer.close);
    console.log("ready");
    return;
  }
  const n = Number(count);
  let begin = performance.now();
  await peer.push(n);
  const pushSeconds = (performance.now() - begin) / 1000;
  begin = performance.now();
  await new Promise((resolve, reject) => {
    peer.work((jobs = 1) => {
      done.jobs += jobs;
      if (done.jobs === n) resolve();
    }).catch(reject);
  });
  console.log(JSON.stringify({ jobs: done.jobs, push_seconds: pushSeconds, drain_seconds: (performance.now() - begin) / 1000 }));
  await peer.close();
  process.exit(0);
}

// 0 … n-1 in pieces of at most `size`.
export function pieces(n, size = 1000) {
  const all = Array.from({ length: n }, (_, i) => ({ n: i }));
  return Array.from({ length: Math.ceil(n / size) }, (_, i) => all.slice(i * size, (i + 1) * size));
}
