// An agent: a model says which tool is next, until it has an answer. A call of the model is claimed, since it costs money and has no
// key that the other side would know; after a crash in the middle a person is asked, and it is not paid for twice unseen. What a tool
// changes waits for an approval. The model here is a stub that answers from a file.
import { readFileSync, appendFileSync } from "node:fs";
import hapax from "hapax";

const [script = new URL("model.json", import.meta.url), log = "agent.log"] = process.argv.slice(2);
const answers = JSON.parse(readFileSync(script));
const model = (turn) => { appendFileSync(log, `model ${turn}\n`); return answers[turn]; };
const tools = {
  lookup: ({ order }) => ({ order, total: 120, shipped: false }), // reads: may be repeated
  refund: ({ order, amount }, key) => { appendFileSync(log, `refund ${order} ${amount}\n`); return { refunded: amount, key }; },
};

const agent = hapax.function("agent", { version: "1" }, async (ctx, { question }) => {
  const said = [{ role: "user", content: question }];
  for (let turn = 0; turn < 10; turn++) {
    const reply = await ctx.step("model", { effect: "claimed" }, () => model(turn));
    said.push({ role: "assistant", ...reply });
    if (!reply.tool) return { answer: reply.content, turns: turn + 1 };
    if (reply.tool === "refund") await ctx.approval(`refund ${reply.input.amount}?`, { timeout: "1d" });
    const out = await ctx.step(reply.tool, { effect: reply.tool === "refund" ? "claimed" : "idempotent" }, (key) => tools[reply.tool](reply.input, key));
    said.push({ role: "tool", content: out });
  }
  throw new hapax.Final("the model has found no end in ten turns");
});

const worker = hapax.work({ functions: [agent], lease: "5s" });
process.on("SIGTERM", () => worker.stop());
await worker;
