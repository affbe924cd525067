// Takes turns of the functions, as long as it runs. As many of these as you like, on as many machines.
import hapax from "./hapax/index.js";
import { order } from "./order.mjs";

const worker = hapax.work({ functions: [order] });
for (const signal of ["SIGINT", "SIGTERM"]) process.on(signal, () => worker.stop());
await worker;
