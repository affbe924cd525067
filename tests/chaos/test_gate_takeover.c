/*
 * A slow holder, and another who takes its record over when the lease (two seconds) is past:
 *
 *   A  POST ─▶ service, held ───────────────────────────────────────────── its end comes late
 *   B     POST ─▶ 409 … 409 ─▶ takes over ─▶ service ─▶ created               │
 *                                              or still held ─────────────────┼──────▶ created
 *   C                                                            409 until B is done  ─▶ B's answer, replayed
 *
 * However A ends, a completion, an answer that is not stored (a delete) or a failure, and whether B is done by then or
 * still at work: A's client hears what became of its request, B's record stands, and nobody executes a third time.
 *
 * All of these happen side by side on one store, each with a path and a key of its own. Where gates share a store, B and C
 * are at another gate than A.
 */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "support/await.h"
#include "support/gate_process.h"

#define LEASE_MS 2000 /* long enough for all that happens within one, also on a busy machine */
#define GRAIN_MS 2    /* two clocks that count whole milliseconds */
#define CONFIG "{'processing_ttl': '2s', 'upstream_timeout': '120s'}"
#define WAIT_MS 60000

/* How A ends, and what its client hears of it. */
static const struct late {
	const char *name;
	struct play play;
	int status;
	const char *marker;
} lates[] = {
	{"a completion", {.status = 201, .receipt = true, .hold = true}, 201, "stale"},
	{"a delete", {.status = 500, .receipt = true, .hold = true}, 500, NULL},
	{"a reset", {.how = PLAY_RESET, .hold = true}, 502, NULL},
};

#define LATES (sizeof lates / sizeof *lates)
#define CASES (2 * LATES)

/* A POST in the background. */
struct posting {
	pthread_t thread;
	struct client *client;
	const char *path, *key, *body;
	bool persists; /* it is sent again after a 409 */
	int64_t start_ms;
	size_t conflicts;
	struct reply reply;
};

struct takeover {
	struct gates *gates;
	const struct late *late;
	bool at_work; /* B is, when A ends */
	char path[32], key[GATE_KEY_BYTES], body[200];
	struct posting a, b;
};

/* ---- clients ---- */

static void *post(void *context)
{
	struct posting *p = context;

	p->start_ms = await_now_ms();
	gate_post(p->client, p->path, p->key, p->body, &p->reply);
	while (p->persists && reply_is(&p->reply, 409, "conflict") && await_now_ms() < p->start_ms + WAIT_MS) {
		p->conflicts++;
		reply_release(&p->reply);
		await_pause();
		gate_post(p->client, p->path, p->key, p->body, &p->reply);
	}
	return NULL;
}

static void posting_start(struct posting *p, const struct takeover *t, int port, bool persists)
{
	*p = (struct posting){.path = t->path, .key = t->key, .body = t->body, .persists = persists};
	p->client = client_new(port, NULL);
	assert_int_equal(pthread_create(&p->thread, NULL, post, p), 0);
}

static void posting_join(struct posting *p, const char *who, int status, const char *marker)
{
	pthread_join(p->thread, NULL);
	client_free(p->client);
	if (!reply_is(&p->reply, status, marker))
		fail_msg("%s %s: %d %s was expected: %s%s", who, p->path, status, marker ? marker : "unmarked",
			 p->reply.head, p->reply.body ? p->reply.body : "none");
}

/* ---- the steps ---- */

static void begin(struct takeover *t)
{
	service_play(t->gates->service, t->path, &t->late->play);
	posting_start(&t->a, t, t->gates->gate[0]->port, /* persists= */ false);
	service_await(t->gates->service, t->path, 1, WAIT_MS);
}

static void try_to_take_over(struct takeover *t)
{
	service_play(t->gates->service, t->path, &(struct play){.status = 201, .receipt = true, .hold = t->at_work});
	posting_start(&t->b, t, t->gates->gate[t->gates->n - 1]->port, /* persists= */ true);
}

/* Not before the lease is past: it began after A was sent. Returns how long it took, seen from there. */
static int64_t await_takeover(struct takeover *t)
{
	int64_t took_ms;

	service_await(t->gates->service, t->path, 2, WAIT_MS);
	took_ms = service_call(t->gates->service, t->path, 1).at_ms - t->a.start_ms;
	if (took_ms < LEASE_MS - GRAIN_MS)
		fail_msg("%s was taken over after %lld ms", t->path, (long long)took_ms);
	if (!t->at_work)
		posting_join(&t->b, "B", 201, "created");
	return took_ms;
}

/* C is refused: A's end has freed nothing, and its bytes are not to be had. */
static void check_b_is_at_work(struct takeover *t, struct client *c)
{
	struct reply reply;

	gate_post(c, t->path, t->key, t->body, &reply);
	if (!reply_is(&reply, 409, "conflict"))
		fail_msg("%s while B is at work: %s%s", t->path, reply.head, reply.body ? reply.body : "none");
	reply_release(&reply);
}

static void check_b_stands(struct takeover *t, struct client *c)
{
	struct reply reply;

	gate_post(c, t->path, t->key, t->body, &reply);
	if (!reply_is(&reply, 201, "replayed") || !reply_same(&reply, &t->b.reply))
		fail_msg("%s: B's answer was %s, and C has %s%s", t->path, t->b.reply.body, reply.head,
			 reply.body ? reply.body : "none");
	assert_int_equal(service_count(t->gates->service, t->path, NULL), 2);
	assert_true(t->b.conflicts > 0);
	reply_release(&reply);
	reply_release(&t->a.reply);
	reply_release(&t->b.reply);
}

static void cast(struct gates *gates, struct takeover cases[CASES])
{
	for (size_t i = 0; i < CASES; i++) {
		struct takeover *t = &cases[i];

		*t = (struct takeover){.gates = gates, .late = &lates[i % LATES], .at_work = i >= LATES};
		snprintf(t->path, sizeof t->path, "/late/%zu", i);
		gates_key(gates, t->key, "late-%zu", i);
		snprintf(t->body, sizeof t->body, "{\"id\":\"%s\"}", t->key);
	}
}

static void the_new_owners_record_stands(void **state, enum gates_store store, size_t gates_n)
{
	struct gates *gates = *state = gates_new(store, gates_n, CONFIG);
	struct client *c = client_new(gates->gate[gates_n - 1]->port, NULL);
	static struct takeover cases[CASES];
	int64_t soonest_ms = INT64_MAX;

	cast(gates, cases);
	for (size_t i = 0; i < CASES; i++)
		begin(&cases[i]);
	for (size_t i = 0; i < CASES; i++)
		try_to_take_over(&cases[i]);
	for (size_t i = 0; i < CASES; i++) {
		int64_t took_ms = await_takeover(&cases[i]);

		soonest_ms = took_ms < soonest_ms ? took_ms : soonest_ms;
	}
	for (size_t i = 0; i < CASES; i++)
		service_release_one(gates->service); /* the As, which have been held for longest */
	for (size_t i = 0; i < CASES; i++)
		posting_join(&cases[i].a, cases[i].late->name, cases[i].late->status, cases[i].late->marker);
	for (size_t i = LATES; i < CASES; i++)
		check_b_is_at_work(&cases[i], c);
	service_release(gates->service);
	for (size_t i = LATES; i < CASES; i++)
		posting_join(&cases[i].b, "B", 201, "created");
	for (size_t i = 0; i < CASES; i++)
		check_b_stands(&cases[i], c);
	client_free(c);
	printf("# %s, %zu gate%s: %zu records taken over after a lease of %d ms (the first after %lld ms); the old holder's "
	       "late completion, delete and failure left all of them alone, done or at work\n",
	       gates_store_name(store), gates_n, gates_n > 1 ? "s" : "", CASES, LEASE_MS, (long long)soonest_ms);
}

static void in_memory(void **state)
{
	the_new_owners_record_stands(state, GATES_MEMORY, 1);
}

static void on_sqlite(void **state)
{
	the_new_owners_record_stands(state, GATES_SQLITE, 1);
}

static void on_postgres(void **state)
{
	the_new_owners_record_stands(state, GATES_POSTGRES, 2);
}

static void on_redis(void **state)
{
	the_new_owners_record_stands(state, GATES_REDIS, 2);
}

static int down(void **state)
{
	gates_free(*state);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(in_memory, down),
		cmocka_unit_test_teardown(on_sqlite, down),
		cmocka_unit_test_teardown(on_postgres, down),
		cmocka_unit_test_teardown(on_redis, down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
