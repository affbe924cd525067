// The function on an engine in memory: to its end without waiting, and then in every order of two workers, the first of which dies or is late.
import assert from "node:assert";
import hapax from "./hapax/index.js";
import { order } from "./order.mjs";

const steps = { reserve: () => "reserved", charge: () => "charged" };
const it = await hapax.test(order, { input: { item: "lamp", total: 120 }, steps, approvals: { approve: { by: "ann" } } });
assert.deepEqual([it.status, it.output], ["COMPLETED", { paid: "charged", approved_by: "ann" }]);
console.log(`ok: ${it.crashes} crashes, ${it.orders} orders of two workers, always the same end`);
