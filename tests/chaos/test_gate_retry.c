/*
 * A client that has read the last byte of a first answer may say so to another, who asks at once, on another connection
 * and, where gates share a store, at another gate. That one gets the replay, every time: what was answered as created is
 * stored before its first byte goes out.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

#include "support/gate_process.h"

#define RETRIES 1000
#define PATH "/payments"

/* `shows`: what came instead of a replay is printed. */
static bool is_replayed_at_once(struct gates *gates, struct client *first, struct client *second, int n, bool shows)
{
	char key[GATE_KEY_BYTES], body[200];
	struct reply created, again;
	bool replayed;

	gates_key(gates, key, "%d", n);
	snprintf(body, sizeof body, "{\"id\":\"%s\",\"amount\":%d}", key, n);
	gate_post(first, PATH, key, body, &created);
	gate_post(second, PATH, key, body, &again);
	if (!reply_is(&created, 201, "created"))
		fail_msg("%s: %s%s", key, created.head, created.body ? created.body : "");
	replayed = reply_is(&again, 201, "replayed") && reply_same(&again, &created);
	if (!replayed && shows)
		print_message("%s: %s%s\n", key, again.head, again.body ? again.body : "");
	reply_release(&created);
	reply_release(&again);
	return replayed;
}

static void retries_are_replays(void **state, enum gates_store store, size_t gates_n)
{
	struct gates *gates = *state = gates_new(store, gates_n, "{}");
	struct client *first = client_new(gates->gate[0]->port, NULL);
	struct client *second = client_new(gates->gate[gates_n - 1]->port, NULL);
	int replayed = 0;

	service_play(gates->service, PATH, &(struct play){.status = 201, .receipt = true});
	for (int n = 0; n < RETRIES; n++)
		replayed += is_replayed_at_once(gates, first, second, n, /* shows= */ replayed == n);
	client_free(first);
	client_free(second);
	printf("# %s, %zu gate%s: a retry right after the last byte was a replay %d times of %d\n",
	       gates_store_name(store), gates_n, gates_n > 1 ? "s" : "", replayed, RETRIES);
	assert_int_equal(replayed, RETRIES);
	assert_int_equal(service_count(gates->service, PATH, NULL), RETRIES);
}

static void in_memory(void **state)
{
	retries_are_replays(state, GATES_MEMORY, 1);
}

static void on_sqlite(void **state)
{
	retries_are_replays(state, GATES_SQLITE, 1);
}

static void on_postgres(void **state)
{
	retries_are_replays(state, GATES_POSTGRES, 2);
}

static void on_redis(void **state)
{
	retries_are_replays(state, GATES_REDIS, 2);
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
