/*
 * The keyring by a clock that stands still until it is moved: what is fresh answers at once and from memory, what is old is read
 * again, a refusal is never an old one, and what cannot be read admits nobody.
 */
#include "engine/keyring.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "support/await.h"
#include "support/store.h"

#define DEADLINE_MS 60000

/* Moved here, and read in the keyring's thread. */
struct moved_clock {
	struct clock clock;
	_Atomic int64_t wall_ms, mono_ms;
};

static struct wall_time moved_wall(struct clock *clock)
{
	return (struct wall_time){atomic_load(&((struct moved_clock *)clock)->wall_ms)};
}

static struct mono_time moved_mono(struct clock *clock)
{
	return (struct mono_time){atomic_load(&((struct moved_clock *)clock)->mono_ms) * 1000000};
}

static void clock_init(struct moved_clock *clock)
{
	*clock = (struct moved_clock){.clock = {.wall = moved_wall, .mono = moved_mono}};
	atomic_store(&clock->wall_ms, clock_wall(clock_system()).ms);
	atomic_store(&clock->mono_ms, 1000);
}

static void clock_advance_ms(struct moved_clock *clock, int64_t ms)
{
	atomic_fetch_add(&clock->wall_ms, ms);
	atomic_fetch_add(&clock->mono_ms, ms);
}

struct shop {
	struct store *store;
	struct moved_clock clock;
	struct log log;
	struct db *db; /* of whoever makes keys */
	struct arena arena;
	struct keyring *keyring;
};

/* ---- set up ---- */

static void start(struct shop *shop)
{
	struct keyring_options options = {.url = shop->store->url, .clock = &shop->clock.clock, .log = &shop->log};
	struct hx_error err;

	if (keyring_new(&options, &shop->keyring, &err))
		fail_msg("%s", err.detail);
}

static int set_up(void **state, enum store_kind kind)
{
	struct shop *shop = calloc(1, sizeof *shop);

	*state = shop;
	shop->store = store_new(kind);
	clock_init(&shop->clock);
	log_init(&shop->log, STDERR_FILENO, LOG_LEVEL_ERROR, clock_system());
	db_close(store_open_migrated(shop->store));
	shop->db = store_open_url(shop->store->url, &shop->clock.clock);
	arena_init(&shop->arena, 16u << 20);
	start(shop);
	return 0;
}

static int set_up_sqlite(void **state)
{
	return set_up(state, STORE_SQLITE_FILE);
}

static int set_up_postgres(void **state)
{
	return set_up(state, STORE_POSTGRES);
}

static int tear_down(void **state)
{
	struct shop *shop = *state;

	keyring_free(shop->keyring);
	db_close(shop->db);
	arena_release(&shop->arena);
	store_free(shop->store);
	free(shop);
	return 0;
}

/* ---- keys ---- */

struct made {
	int64_t id;
	char text[API_KEY_TEXT_CHARS + 1];
};

static void run(struct shop *shop, struct unit *unit)
{
	struct unit_result result;
	struct hx_error err;

	arena_reset(&shop->arena);
	if (db_run_unit(shop->db, unit, &result, &shop->arena, &err))
		fail_msg("%s", err.detail);
	assert_int_equal(result.verdict, UNIT_WON);
}

static struct made make(struct shop *shop, int64_t id, int64_t lifetime_ms)
{
	struct api_key key = {.id = id,
			      .workspace = slice_str("w"),
			      .requester = slice_str("r"),
			      .name = slice_str(""),
			      .scope = API_KEY_EXECUTE};
	uint8_t secret[API_KEY_SECRET_BYTES];
	struct made made = {.id = id};
	struct unit unit;

	memset(secret, (int)id, sizeof secret);
	api_key_format(id, secret, made.text);
	api_key_digest(slice_str(made.text), key.digest);
	unit_init(&unit, 0);
	api_key_create(&unit, &key, lifetime_ms);
	run(shop, &unit);
	return made;
}

static void revoke_it(struct shop *shop, const struct made *key)
{
	struct unit unit;

	unit_init(&unit, 0);
	api_key_revoke(&unit, key->id);
	run(shop, &unit);
}

/* ---- questions ---- */

struct asked {
	struct keyring_question question;
	struct arena arena;
	bool at_once;
	_Atomic bool answered;
};

static void answered(struct keyring_question *question)
{
	struct asked *asked = (struct asked *)question;

	atomic_store(&asked->answered, true);
}

static void ask_now(struct shop *shop, const char *text, struct asked *ret)
{
	*ret = (struct asked){.question = {.key = slice_str(text), .answered = answered}};
	arena_init(&ret->arena, 1u << 16);
	ret->question.arena = &ret->arena;
	ret->at_once = keyring_ask(shop->keyring, &ret->question);
}

/* What it says in the end; *ret_at_once (may be NULL): without the store. */
static enum hx_code ask(struct shop *shop, const char *text, bool *ret_at_once)
{
	struct asked asked;

	ask_now(shop, text, &asked);
	if (!asked.at_once)
		AWAIT(DEADLINE_MS, atomic_load(&asked.answered));
	if (!asked.question.code && !asked.question.open)
		assert_true(slice_is(asked.question.workspace, "w") && slice_is(asked.question.requester, "r") &&
			    asked.question.scope == API_KEY_EXECUTE);
	if (ret_at_once)
		*ret_at_once = asked.at_once;
	arena_release(&asked.arena);
	return asked.question.code;
}

static void assert_asked(struct shop *shop, const char *text, enum hx_code code, bool at_once)
{
	bool was_at_once;

	assert_int_equal(ask(shop, text, &was_at_once), code);
	assert_int_equal(was_at_once, at_once);
}

/* ---- tests ---- */

static void test_open_until_there_is_a_key(void **state)
{
	struct shop *shop = *state;
	struct made key;

	assert_asked(shop, "", HX_OK, true);
	assert_false(keyring_has_keys(shop->keyring));
	clock_advance_ms(&shop->clock, KEYRING_AGE_MAX_MS + 1);
	assert_asked(shop, "", HX_OK, false); /* read again, and still none */
	key = make(shop, 1, 0);
	assert_asked(shop, key.text, HX_OK, false); /* found at once, though nobody knew it */
	assert_asked(shop, key.text, HX_OK, true);
	assert_asked(shop, "", HX_UNAUTHENTICATED, true);
	assert_true(keyring_has_keys(shop->keyring));
	revoke_it(shop, &key);
	clock_advance_ms(&shop->clock, KEYRING_AGE_MAX_MS + 1);
	assert_asked(shop, key.text, HX_UNAUTHENTICATED, false);
	assert_asked(shop, "", HX_UNAUTHENTICATED, true);
}

static void test_a_revoked_key_is_good_for_no_longer_than_the_age(void **state)
{
	struct shop *shop = *state;
	struct made first = make(shop, 1, 0), other = make(shop, 2, 0);

	assert_asked(shop, first.text, HX_OK, false);
	revoke_it(shop, &first);
	/* Up to here what was read then is believed; nobody has asked past KEYRING_RENEW_MS, so nobody has read it again. */
	clock_advance_ms(&shop->clock, KEYRING_RENEW_MS);
	assert_asked(shop, first.text, HX_OK, true);
	clock_advance_ms(&shop->clock, KEYRING_AGE_MAX_MS - KEYRING_RENEW_MS + 1);
	assert_asked(shop, first.text, HX_UNAUTHENTICATED, false);
	assert_asked(shop, other.text, HX_OK, true);
}

static bool is_refused(struct shop *shop, const char *text)
{
	return ask(shop, text, NULL) == HX_UNAUTHENTICATED;
}

/* Whoever asks past KEYRING_RENEW_MS need not wait, and has it read again for those who come after. */
static void test_it_is_renewed_in_the_background(void **state)
{
	struct shop *shop = *state;
	struct made key = make(shop, 1, 0);

	assert_asked(shop, key.text, HX_OK, false);
	revoke_it(shop, &key);
	clock_advance_ms(&shop->clock, KEYRING_RENEW_MS + 1);
	assert_asked(shop, key.text, HX_OK, true);
	AWAIT(DEADLINE_MS, is_refused(shop, key.text));
}

static void test_expiry_is_by_the_stores_clock(void **state)
{
	struct shop *shop = *state;
	struct made key = make(shop, 1, 1500);

	assert_asked(shop, key.text, HX_OK, false);
	clock_advance_ms(&shop->clock, 1499);
	assert_asked(shop, key.text, HX_OK, true); /* and has it read again */
	clock_advance_ms(&shop->clock, 1);
	assert_asked(shop, key.text, HX_UNAUTHENTICATED, false);
}

static void test_what_does_not_fit(void **state)
{
	struct shop *shop = *state;
	struct made key = make(shop, 1, 0), other = make(shop, 2, 0);
	char forged[API_KEY_TEXT_CHARS + 1];

	memcpy(forged, key.text, sizeof forged);
	memcpy(forged + 17, other.text + 17, API_KEY_TEXT_CHARS - 17);
	/* All of them the same way: by a reading that begins after the question. */
	assert_asked(shop, forged, HX_UNAUTHENTICATED, false);
	assert_asked(shop, "hx_", HX_UNAUTHENTICATED, false);
	assert_asked(shop, "anything", HX_UNAUTHENTICATED, false);
	forged[14]++; /* no such id */
	assert_asked(shop, forged, HX_UNAUTHENTICATED, false);
	assert_asked(shop, key.text, HX_OK, true);
}

/* Every one of them is known, the first and the last too. */
static void test_as_many_as_there_can_be(void **state)
{
	struct shop *shop = *state;
	struct hx_error err;
	char sql[400];
	struct made first, last;

	first = make(shop, 1, 0);
	snprintf(sql, sizeof sql,
		 "WITH RECURSIVE n(i) AS (SELECT 2 UNION ALL SELECT i + 1 FROM n WHERE i < %d)"
		 " INSERT INTO hx_key (id, workspace, requester, name, scope, digest, created_at)"
		 " SELECT i, 'w', 'r', '', 'read', zeroblob(32), 0 FROM n",
		 API_KEYS_MAX - 1);
	if (shop->db->driver->script(shop->db, sql, &err))
		fail_msg("%s", err.detail);
	last = make(shop, API_KEYS_MAX, 0);
	assert_asked(shop, last.text, HX_OK, false);
	assert_asked(shop, first.text, HX_OK, true);
}

static void break_store(struct shop *shop, const char *sql)
{
	struct hx_error err;

	if (shop->db->driver->script(shop->db, sql, &err))
		fail_msg("%s", err.detail);
}

/* Nobody is let in by what is too old to be believed; and when the store is back, all is as it was. */
static void test_a_store_that_cannot_be_read_admits_nobody(void **state)
{
	struct shop *shop = *state;
	struct made key = make(shop, 1, 0);

	assert_asked(shop, key.text, HX_OK, false);
	break_store(shop, "ALTER TABLE hx_keyring RENAME TO hx_keyring_away");
	assert_asked(shop, key.text, HX_OK, true); /* it is fresh */
	clock_advance_ms(&shop->clock, KEYRING_AGE_MAX_MS + 1);
	assert_asked(shop, key.text, HX_STORE_UNAVAILABLE, false);
	assert_asked(shop, "", HX_UNAUTHENTICATED, true);
	break_store(shop, "ALTER TABLE hx_keyring_away RENAME TO hx_keyring");
	assert_asked(shop, key.text, HX_OK, false);
}

static enum hx_code ask_for_numbers(struct shop *shop, const char *text, bool *ret_at_once)
{
	struct asked asked = {.question = {.key = slice_str(text), .answered = answered, .last_known_will_do = true}};

	arena_init(&asked.arena, 1u << 16);
	asked.question.arena = &asked.arena;
	*ret_at_once = keyring_ask(shop->keyring, &asked.question);
	if (!*ret_at_once)
		AWAIT(DEADLINE_MS, atomic_load(&asked.answered));
	arena_release(&asked.arena);
	return asked.question.code;
}

/* The first one finds out; from then on nobody waits for a store that is not there. */
static void test_numbers_are_given_to_who_was_known(void **state)
{
	struct shop *shop = *state;
	struct made key = make(shop, 1, 0);
	bool at_once;

	assert_asked(shop, key.text, HX_OK, false);
	break_store(shop, "ALTER TABLE hx_keyring RENAME TO hx_keyring_away");
	clock_advance_ms(&shop->clock, KEYRING_AGE_MAX_MS + 1);
	assert_int_equal(ask_for_numbers(shop, key.text, &at_once), HX_OK);
	assert_false(at_once);
	assert_int_equal(ask_for_numbers(shop, key.text, &at_once), HX_OK);
	assert_true(at_once);
	assert_int_equal(ask_for_numbers(shop, "hx_", &at_once), HX_UNAUTHENTICATED);
	assert_int_equal(ask_for_numbers(shop, "", &at_once), HX_UNAUTHENTICATED);
	assert_asked(shop, key.text, HX_STORE_UNAVAILABLE, false);
	/* While it is there, a revoked key is refused as anywhere. */
	break_store(shop, "ALTER TABLE hx_keyring_away RENAME TO hx_keyring");
	assert_asked(shop, key.text, HX_OK, false);
	revoke_it(shop, &key);
	clock_advance_ms(&shop->clock, KEYRING_AGE_MAX_MS + 1);
	assert_int_equal(ask_for_numbers(shop, key.text, &at_once), HX_UNAUTHENTICATED);
}

static void test_a_store_in_memory_has_no_keys(void **state)
{
	struct shop shop = {.store = &(struct store){.url = "sqlite::memory:"}};

	(void)state;
	clock_init(&shop.clock);
	start(&shop);
	assert_asked(&shop, "", HX_OK, true);
	clock_advance_ms(&shop.clock, 10 * KEYRING_AGE_MAX_MS);
	assert_asked(&shop, "", HX_OK, true);
	assert_asked(&shop, "hx_", HX_UNAUTHENTICATED, true);
	keyring_free(shop.keyring);
}

/* Whoever waits while it stops is told, and whoever comes afterwards. */
static void test_stopping(void **state)
{
	enum { ASKERS = 50 };
	struct shop *shop = *state;
	struct asked asked[ASKERS], late;

	for (int i = 0; i < ASKERS; i++)
		ask_now(shop, "hx_", &asked[i]);
	keyring_stop(shop->keyring);
	for (int i = 0; i < ASKERS; i++) {
		enum hx_code code = asked[i].question.code;

		assert_true(asked[i].at_once || atomic_load(&asked[i].answered));
		assert_true(code == HX_STOPPING || code == HX_UNAUTHENTICATED);
		arena_release(&asked[i].arena);
	}
	ask_now(shop, "hx_", &late);
	assert_true(late.at_once && late.question.code == HX_STOPPING);
	arena_release(&late.arena);
}

/* What every request pays: a hash, a search, no store. */
static void test_what_a_hit_costs(void **state)
{
	enum { ASKS = 20000 };
	struct shop *shop = *state;
	struct made key = make(shop, 1, 0);
	struct mono_time began;
	struct asked asked;

	assert_asked(shop, key.text, HX_OK, false);
	break_store(shop, "DROP TABLE hx_keyring"); /* so that nothing could be read */
	began = clock_mono(clock_system());
	for (int i = 0; i < ASKS; i++) {
		ask_now(shop, key.text, &asked);
		assert_true(asked.at_once && asked.question.code == HX_OK);
		arena_release(&asked.arena);
	}
	print_message("# %d ns for a key that is known\n", (int)((clock_mono(clock_system()).ns - began.ns) / ASKS));
}

/* Many threads with good and bad keys while others come and go: everybody gets the answer that is due. */
struct crowd {
	struct shop *shop;
	const char *text;
	enum hx_code code;
	size_t wrong;
	pthread_t thread;
};

static void *ask_often(void *context)
{
	struct crowd *c = context;

	for (int i = 0; i < 60; i++) {
		struct asked asked;

		ask_now(c->shop, c->text, &asked);
		while (!asked.at_once && !atomic_load(&asked.answered))
			await_pause();
		c->wrong += asked.question.code != c->code;
		arena_release(&asked.arena);
	}
	return NULL;
}

static void test_a_crowd(void **state)
{
	enum { CROWD = 8 };
	struct shop *shop = *state;
	struct made key = make(shop, 1, 0);
	struct crowd crowd[CROWD];

	for (int i = 0; i < CROWD; i++) {
		crowd[i] = (struct crowd){
			.shop = shop, .text = i % 4 ? key.text : "hx_no", .code = i % 4 ? HX_OK : HX_UNAUTHENTICATED};
		assert_int_equal(pthread_create(&crowd[i].thread, NULL, ask_often, &crowd[i]), 0);
	}
	for (int64_t id = 2; id < 20; id++) {
		struct made other = make(shop, id, 0);

		revoke_it(shop, &other);
	}
	for (int i = 0; i < CROWD; i++) {
		pthread_join(crowd[i].thread, NULL);
		assert_int_equal(crowd[i].wrong, 0);
	}
}

#define ON_SQLITE(test) cmocka_unit_test_setup_teardown(test, set_up_sqlite, tear_down)
#define ON_POSTGRES(test)                                                                                              \
	{                                                                                                              \
#test "_postgres", test, set_up_postgres, tear_down, NULL                                              \
	}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ON_SQLITE(test_open_until_there_is_a_key),
		ON_POSTGRES(test_open_until_there_is_a_key),
		ON_SQLITE(test_a_revoked_key_is_good_for_no_longer_than_the_age),
		ON_POSTGRES(test_a_revoked_key_is_good_for_no_longer_than_the_age),
		ON_SQLITE(test_it_is_renewed_in_the_background),
		ON_SQLITE(test_expiry_is_by_the_stores_clock),
		ON_SQLITE(test_what_does_not_fit),
		ON_POSTGRES(test_what_does_not_fit),
		ON_SQLITE(test_as_many_as_there_can_be),
		ON_SQLITE(test_a_store_that_cannot_be_read_admits_nobody),
		ON_POSTGRES(test_a_store_that_cannot_be_read_admits_nobody),
		ON_SQLITE(test_numbers_are_given_to_who_was_known),
		cmocka_unit_test(test_a_store_in_memory_has_no_keys),
		ON_SQLITE(test_stopping),
		ON_SQLITE(test_what_a_hit_costs),
		ON_SQLITE(test_a_crowd),
		ON_POSTGRES(test_a_crowd),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
