// middleware.mjs : the service of service.mjs with the idempotency middleware that people write by hand: a table of keys in
// PostgreSQL, one insert before the work and one update after it, both committed.
import { createHash } from "node:crypto";
import pg from "pg";
import { answer, serve, step, stopWith } from "./service.mjs";

const pool = new pg.Pool({ connectionString: process.env.RACE_PG, max: 20 });
await pool.query(`CREATE TABLE IF NOT EXISTS idempotency_keys (key text PRIMARY KEY, request bytea NOT NULL, status int, response text,
  created_at timestamptz NOT NULL DEFAULT now())`);

const take = { name: "take", text: "INSERT INTO idempotency_keys (key, request) VALUES ($1, $2) ON CONFLICT DO NOTHING" };
const keep = { name: "keep", text: "UPDATE idempotency_keys SET status = $2, response = $3 WHERE key = $1" };
const find = { name: "find", text: "SELECT request, status, response FROM idempotency_keys WHERE key = $1" };

async function replay(response, key, digest) {
  const { rows: [row] } = await pool.query({ ...find, values: [key] });
  if (!row.request.equals(digest)) answer(response, 422, { error: "another request has this key" });
  else if (row.status === null) answer(response, 409, { error: "it is under way" });
  else answer(response, row.status, row.response, { "idempotency-replayed": "true" });
}

serve(async (request, response, text) => {
  const key = request.headers["idempotency-key"];
  const digest = createHash("sha256").update(`${request.method} ${request.url}\n${text}`).digest();
  if (!key) return answer(response, 200, step(request.url, {}));
  if ((await pool.query({ ...take, values: [key, digest] })).rowCount === 0) return replay(response, key, digest);
  const body = JSON.stringify(step(request.url, {}));
  await pool.query({ ...keep, values: [key, 200, body] });
  answer(response, 200, body);
});
stopWith(() => pool.end());
