/*
 * For tests of the engine in an embedding program: only what hapax.h has, on SQLite and on PostgreSQL. The outside world is a bank
 * in memory, which remembers every call and every key it was called with, answers as it is told to, and can keep its callers
 * waiting at a gate.
 */
#ifndef HX_TESTS_UNIT_ENGINE_EMBED_TEST_H
#define HX_TESTS_UNIT_ENGINE_EMBED_TEST_H

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "hapax.h"
#include "support/await.h"
#include "support/store.h"

#define DEADLINE_MS 60000
#define CALLS_MAX 64

/* ---- the bank ---- */

struct seen {
	char key[100], input[200];
	int64_t attempt, fence, timeout_ms;
};

static struct {
	pthread_mutex_t mutex;
	pthread_cond_t news;
	bool shut;                              /* callers wait, and do not look at their cancelling */
	bool cancelled;                         /* one that waited was told so */
	enum hx_native_outcome says[CALLS_MAX]; /* by call */
	const char *words;                      /* the output of all; NULL: {"n": CALL} */
	size_t calls, effects;
	struct seen seen[CALLS_MAX];
} bank = {.mutex = PTHREAD_MUTEX_INITIALIZER, .news = PTHREAD_COND_INITIALIZER};

static inline bool is_new_key(size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (strcmp(bank.seen[i].key, bank.seen[n].key) == 0 && bank.says[i] == HX_NATIVE_DONE)
			return false;
	return true;
}

static inline void pass_gate(const struct hx_native_call *call)
{
	while (bank.shut) {
		struct timespec until;

		bank.cancelled |= hx_native_cancelled(call) != 0; /* and goes on all the same */
		clock_gettime(CLOCK_REALTIME, &until);
		until.tv_nsec += 2000000;
		until.tv_sec += until.tv_nsec / 1000000000;
		until.tv_nsec %= 1000000000;
		pthread_cond_timedwait(&bank.news, &bank.mutex, &until);
	}
}

static inline enum hx_native_outcome charge(void *context, const struct hx_native_call *call, struct hx_output *output)
{
	enum hx_native_outcome outcome;
	char text[50];
	size_t n;

	pthread_mutex_lock(&bank.mutex);
	n = bank.calls++ % CALLS_MAX;
	bank.seen[n] = (struct seen){.attempt = call->attempt, .fence = call->fence, .timeout_ms = call->timeout_ms};
	snprintf(bank.seen[n].key, sizeof bank.seen[n].key, "%s", call->key);
	snprintf(bank.seen[n].input, sizeof bank.seen[n].input, "%s", call->input);
	bank.effects += bank.says[n] == HX_NATIVE_DONE && is_new_key(n);
	pass_gate(call);
	outcome = context == &bank && strstr(call->document, "\"step\":") ? bank.says[n] : HX_NATIVE_FAILED_FOR_GOOD;
	snprintf(text, sizeof text, "{\"n\": %zu}", n + 1);
	hx_output_add(output, bank.words ? bank.words : text);
	pthread_mutex_unlock(&bank.mutex);
	return outcome;
}

static inline size_t locked(const size_t *number)
{
	size_t n;

	pthread_mutex_lock(&bank.mutex);
	n = *number;
	pthread_mutex_unlock(&bank.mutex);
	return n;
}

static inline bool was_told_to_stop(void)
{
	bool told;

	pthread_mutex_lock(&bank.mutex);
	told = bank.cancelled;
	pthread_mutex_unlock(&bank.mutex);
	return told;
}

static inline void shut(bool is_shut)
{
	pthread_mutex_lock(&bank.mutex);
	bank.shut = is_shut;
	pthread_cond_broadcast(&bank.news);
	pthread_mutex_unlock(&bank.mutex);
}

/* ---- the engine ---- */

#define ORDER(effect)                                                                                                  \
	"{\"workflow\": \"order\", \"kind\": \"run\","                                                                 \
	" \"actions\": {\"charge\": {\"kind\": \"native\", \"function\": \"charge\", \"effect\": \"" effect "\"}},"    \
	" \"steps\": [{\"name\": \"pay\", \"type\": \"task\", \"action\": \"charge\", \"input\": \".input.cents\","    \
	"  \"save_as\": \"receipt\", \"timeout\": \"7s\", \"retry\": {\"max_attempts\": 3, \"initial\": \"1ms\"}},"    \
	"  {\"name\": \"tell\", \"type\": \"task\", \"action\": \"charge\"}],"                                         \
	" \"output\": \".state.receipt\"}"

static struct store *store;
static struct hx_engine *engine;
static struct hx_error error;
static int64_t drain_ms;
static char findings[4000];

static inline void on_finding(void *data, const char *line)
{
	assert_ptr_equal(data, findings);
	strncat(findings, line, sizeof findings - strlen(findings) - 2);
	strncat(findings, "\n", 2);
}

static inline enum hx_code try_open(const char *url, size_t natives_n, struct hx_engine **ret_engine)
{
	struct hx_native natives[] = {{"charge", charge, &bank}};
	struct hx_engine_options options = {
		HX_SIZE(hx_engine_options), .store = url,         .node = "test",           .natives = natives,
		.natives_n = natives_n,     .drain_ms = drain_ms, .on_finding = on_finding, .data = findings,
	};

	findings[0] = '\0';
	return hx_engine_open(&options, ret_engine, &error);
}

static inline void must(enum hx_code code)
{
	if (code)
		fail_msg("%s: %s", hx_code_name(code), error.detail);
}

static inline void close_engine(void)
{
	hx_engine_close(engine);
	engine = NULL;
}

static inline void reopen(void)
{
	close_engine();
	must(try_open(store->url, 1, &engine));
}

static inline int set_up(void **state)
{
	drain_ms = 0;
	bank.shut = bank.cancelled = false;
	bank.calls = bank.effects = 0;
	bank.words = NULL;
	memset(bank.says, 0, sizeof bank.says);
	store = store_new(*(enum store_kind *)*state);
	must(try_open(store->url, 1, &engine));
	must(hx_engine_define(engine, "order", ORDER("keyed"), &error));
	return 0;
}

static inline int tear_down(void **state)
{
	(void)state;
	shut(false);
	close_engine();
	store_free(store);
	return 0;
}

/* ---- what the program does ---- */

static const struct hx_run_request one_order = {HX_SIZE(hx_run_request), .workflow = "order", .key = "order-7",
						.input = "{\"cents\": 1200}"};

/* The id goes to ret_id, which has room for it. */
static inline bool start(const struct hx_run_request *request, char *ret_id)
{
	struct hx_result *run = NULL;
	bool created;

	must(hx_run_start(engine, NULL, request, &run, &error));
	snprintf(ret_id, 64, "%s", run->id);
	created = run->created;
	hx_result_free(run);
	return created;
}

/* Its status when it has ended, as a constant; the result goes to ret_end for the caller to free. */
static inline const char *end_of(const char *id, struct hx_result **ret_end)
{
	must(hx_run_wait(engine, NULL, id, DEADLINE_MS, ret_end, &error));
	assert_true((*ret_end)->ended);
	return (*ret_end)->status;
}

static inline void completes(const char *id)
{
	struct hx_result *end;

	assert_string_equal(end_of(id, &end), "COMPLETED");
	hx_result_free(end);
}

static inline bool is_at(const char *id, const char *status)
{
	struct hx_result *now;
	bool is;

	must(hx_run_wait(engine, NULL, id, 0, &now, &error));
	is = strcmp(now->status, status) == 0;
	hx_result_free(now);
	return is;
}

static enum store_kind sqlite = STORE_SQLITE_FILE, postgres = STORE_POSTGRES;

/* clang-format off */
#define ON(name, store) {#name " on " #store, name, set_up, tear_down, &store}
#define TEST(name) ON(name, sqlite), ON(name, postgres)
/* clang-format on */

#endif
