/* See keyring.h. */
#include "engine/keyring.h"

#include <stdlib.h>
#include <sys/random.h>

#include "base/thread.h"
#include "db/driver.h"

#define READ_MS 2000 /* a store that is silent for longer is lost: who asks is told so */
#define GAP_MS 10
#define PAGE 500
#define PAGE_BYTES_MAX (4u << 20)
#define KEYS_BYTES_MAX (64u << 20) /* API_KEYS_MAX with the longest of names */
#define NS_PER_MS 1000000

/* What was read at one moment. Immutable; the arena is its own. */
struct keys {
	struct arena arena;
	int64_t version;
	size_t n;
	struct api_key *all; /* by id */
};

struct keyring {
	struct keyring_options options;
	struct thread thread;
	bool in_memory;                       /* constant: there can be no keys */
	uint8_t secret[SESSION_SECRET_BYTES]; /* constant */
	/* The thread's own. */
	struct db *db;
	struct arena page;
	/* Under the mutex. */
	struct monitor monitor;
	bool stopping;
	bool stale; /* somebody has asked, and what is known is older than KEYRING_RENEW_MS */
	bool lost;  /* the last reading failed, and that was told */
	size_t waiting_n;
	struct keyring_question *waiting;
	struct keys *keys;
	struct mono_time read_at; /* a moment before the last reading began, also if that has found nothing new */
	int64_t store_ms;         /* what the store's clock said then */
};

/* ---- judging ---- */

static int by_id(const void *id, const void *key)
{
	int64_t wanted = *(const int64_t *)id, there = ((const struct api_key *)key)->id;

	return (wanted > there) - (wanted < there);
}

static bool is_over(const struct keyring *k, const struct api_key *key, struct mono_time now)
{
	int64_t store_now_ms = k->store_ms + (now.ns - k->read_at.ns) / NS_PER_MS;

	return key->expires_at_ms && key->expires_at_ms <= store_now_ms;
}

/* Every key that is given costs the same, whatever is wrong about it. */
static const struct api_key *fitting(const struct keyring *k, const struct keyring_question *q, struct mono_time now)
{
	static const struct api_key nobody = {0};
	const struct api_key *found = NULL;
	bool same;

	if (q->well_formed)
		found = bsearch(&q->id, k->keys->all, k->keys->n, sizeof *k->keys->all, by_id);
	same = q->is_session ? session_is_good(&q->session, k->secret, (found ? found : &nobody)->digest, now)
			     : api_key_same((found ? found : &nobody)->digest, q->digest);
	return found && same && !is_over(k, found, now) ? found : NULL;
}

/* By what is known; under the mutex. */
static void keyring_judge(struct keyring *k, struct keyring_question *q, struct mono_time now)
{
	const struct api_key *key = q->key.n ? fitting(k, q, now) : NULL;

	q->open = (!q->key.n || q->is_session) && k->keys->version == 0;
	if (q->open) {
		q->code = HX_OK;
	} else if (!key) {
		q->code = HX_UNAUTHENTICATED;
	} else {
		q->scope = key->scope;
		q->workspace = arena_copy(q->arena, key->workspace);
		q->requester = arena_copy(q->arena, key->requester);
		q->code = q->arena->failed ? HX_NO_MEMORY : HX_OK;
	}
}

/* Refusals of a key wait for what is read from now on; that a key is needed once there are keys stays true. */
static bool is_final(const struct keyring *k, const struct keyring_question *q, struct mono_time now)
{
	bool fresh = now.ns - k->read_at.ns <= (int64_t)KEYRING_AGE_MAX_MS * NS_PER_MS;

	return q->code == HX_UNAUTHENTICATED ? !q->key.n
					     : fresh || (q->last_known_will_do && (k->lost || q->store_lost));
}

static bool ask_locked(struct keyring *k, struct keyring_question *q)
{
	struct mono_time now = clock_mono(k->options.clock);

	keyring_judge(k, q, now);
	if (k->in_memory)
		return true;
	if (now.ns - k->read_at.ns > (int64_t)KEYRING_RENEW_MS * NS_PER_MS && !k->stale) {
		k->stale = true;
		monitor_wake_one(&k->monitor);
	}
	if (is_final(k, q, now))
		return true;
	if (k->stopping || k->waiting_n == KEYRING_WAITERS_MAX) {
		q->code = k->stopping ? HX_STOPPING : HX_BUSY;
		return true;
	}
	q->next = k->waiting;
	k->waiting = q;
	k->waiting_n++;
	monitor_wake_one(&k->monitor);
	return false;
}

bool keyring_ask(struct keyring *k, struct keyring_question *q)
{
	if (q->is_session) {
		q->well_formed = session_parse(q->key, &q->session);
		q->id = q->session.key;
	} else if (q->key.n) {
		q->well_formed = api_key_parse(q->key, &q->id);
		api_key_digest(q->key, q->digest);
	}
	LOCKED(&k->monitor.mutex);
	return ask_locked(k, q);
}

void keyring_session(struct keyring *k, struct slice key, char ret_text[SESSION_TEXT_CHARS + 1])
{
	struct session session = {.until_ms = clock_mono(k->options.clock).ns / NS_PER_MS + SESSION_MS};
	uint8_t digest[SHA256_BYTES];

	ASSERT(api_key_parse(key, &session.key));
	api_key_digest(key, digest);
	session_sign(&session, k->secret, digest);
	session_format(&session, ret_text);
}

bool keyring_has_keys(struct keyring *k)
{
	LOCKED(&k->monitor.mutex);
	return k->keys->version > 0;
}

/* ---- reading ---- */

static void keys_free(struct keys *keys)
{
	if (!keys)
		return;
	arena_release(&keys->arena);
	free(keys);
}

static struct keys *keys_new(int64_t version)
{
	struct keys *keys = calloc(1, sizeof *keys);

	if (!keys)
		return NULL;
	arena_init(&keys->arena, KEYS_BYTES_MAX);
	keys->version = version;
	keys->all = arena_alloc(&keys->arena, API_KEYS_MAX * sizeof *keys->all);
	if (keys->all)
		return keys;
	keys_free(keys);
	return NULL;
}

static enum hx_code run_unit(struct keyring *k, struct unit *unit, struct unit_result *ret_result, struct hx_error *err)
{
	arena_reset(&k->page);
	k->db->patience.by = mono_add_ms(clock_mono(k->options.clock), READ_MS);
	return db_run_unit(k->db, unit, ret_result, &k->page, err);
}

static enum hx_code take_page(struct keys *keys, const struct db_rows *rows, struct hx_error *err)
{
	for (size_t i = 0; i < rows->n && keys->n < API_KEYS_MAX; i++) {
		struct api_key *key = &keys->all[keys->n++];

		api_key_of_row(rows, i, key);
		key->workspace = arena_copy(&keys->arena, key->workspace);
		key->requester = arena_copy(&keys->arena, key->requester);
		key->name = slice_of(NULL, 0);
	}
	return keys->arena.failed ? arena_error(&keys->arena, err) : HX_OK;
}

/* A key that is made or revoked between two pages raises the version: then the next reading reads all of it again. */
static enum hx_code read_keys(struct keyring *k, struct keys *keys, struct hx_error *err)
{
	enum hx_code code = HX_OK;
	size_t got = PAGE;

	while (!code && got == PAGE) {
		struct unit_result result;
		LOCAL_UNIT(unit);

		api_key_list_live(&unit, keys->n ? keys->all[keys->n - 1].id : -1, PAGE);
		code = run_unit(k, &unit, &result, err);
		got = code ? 0 : result.rows[0].n;
		if (!code)
			code = take_page(keys, &result.rows[0], err);
		if (keys->n == API_KEYS_MAX)
			break;
	}
	return code;
}

static void publish(struct keyring *k, struct keys *keys, struct mono_time began, int64_t store_ms)
{
	struct keys *old = NULL;

	monitor_lock(&k->monitor);
	if (keys) {
		old = k->keys;
		k->keys = keys;
	}
	k->read_at = began;
	k->store_ms = store_ms;
	k->stale = false;
	monitor_unlock(&k->monitor);
	keys_free(old);
}

static enum hx_code read_now(struct keyring *k, struct hx_error *err)
{
	struct mono_time began = clock_mono(k->options.clock);
	struct keys *keys = NULL;
	struct unit_result result;
	LOCAL_UNIT(unit);
	int64_t version, store_ms;
	enum hx_code code;

	api_keyring_look(&unit);
	code = run_unit(k, &unit, &result, err);
	if (!code && result.rows[0].n != 1)
		code = error_set(err, HX_STORE_UNAVAILABLE, "the row of the keyring is missing");
	if (code)
		return code;
	version = db_cell(&result.rows[0], 0, KEYRING_VERSION)->i;
	store_ms = db_cell(&result.rows[0], 0, KEYRING_NOW)->i;
	if (!k->keys || k->keys->version != version) {
		keys = keys_new(version);
		code = keys ? read_keys(k, keys, err) : error_set(err, HX_NO_MEMORY, "the keyring");
	}
	if (code)
		keys_free(keys);
	else
		publish(k, keys, began, store_ms);
	return code;
}

/* ---- the thread ---- */

/* Everybody who waits now; NULL and *ret_stopping: it is over. */
static struct keyring_question *keyring_rest(struct keyring *k, bool *ret_stopping)
{
	struct keyring_question *waiting;

	LOCKED(&k->monitor.mutex);
	while (!k->waiting && !k->stale && !k->stopping)
		monitor_wait(&k->monitor);
	waiting = k->waiting;
	k->waiting = NULL;
	k->waiting_n = 0;
	*ret_stopping = k->stopping;
	return waiting;
}

/* Whoever tries keys in a loop makes no more than a reading every GAP_MS out of it. */
static void keep_gap(struct keyring *k)
{
	struct mono_time until = time_in_ms(GAP_MS);

	LOCKED(&k->monitor.mutex);
	while (!k->stopping && monitor_wait_until(&k->monitor, until))
		;
}

static void answer_all(struct keyring *k, struct keyring_question *waiting, enum hx_code code)
{
	while (waiting) {
		struct keyring_question *q = waiting;

		waiting = q->next; /* it may be gone when it is answered */
		q->code = code;
		if (!code || (code == HX_STORE_UNAVAILABLE && q->last_known_will_do)) {
			monitor_lock(&k->monitor);
			keyring_judge(k, q, clock_mono(k->options.clock));
			monitor_unlock(&k->monitor);
		}
		q->answered(q);
	}
}

static void keyring_tell(struct keyring *k, enum hx_code code, const struct hx_error *err)
{
	bool was_lost;

	monitor_lock(&k->monitor);
	was_lost = k->lost;
	k->lost = code != HX_OK;
	monitor_unlock(&k->monitor);
	if (code && !was_lost)
		log_error(k->options.log, "the API keys cannot be read: nobody is admitted",
			  log_text("detail", err->detail));
	if (!code && was_lost)
		log_info(k->options.log, "the API keys can be read again");
}

static void *keyring_run(void *context)
{
	struct keyring *k = context;
	struct keyring_question *waiting;
	bool stopping;

	while ((waiting = keyring_rest(k, &stopping)), !stopping) {
		struct hx_error err;
		enum hx_code code = read_now(k, &err);

		keyring_tell(k, code, &err);
		answer_all(k, waiting, code ? HX_STORE_UNAVAILABLE : HX_OK);
		keep_gap(k);
	}
	answer_all(k, waiting, HX_STOPPING);
	return NULL;
}

/* ---- its life ---- */

/* On PostgreSQL as a lane connects: a read-only connection could be one to a standby, which lags behind. */
static enum hx_code keyring_start(struct keyring *k, struct hx_error *err)
{
	struct db_options db = {
		.url = k->options.url,
		.clock = k->options.clock,
		.read_only = strncmp(k->options.url, "sqlite:", 7) == 0,
	};
	enum hx_code code = db_open(&db, &k->db, err);

	if (!code)
		code = read_now(k, err);
	return code ? code : thread_start(&k->thread, keyring_run, k, "the keyring's thread", err);
}

enum hx_code keyring_new(const struct keyring_options *options, struct keyring **ret, struct hx_error *err)
{
	struct keyring *k = calloc(1, sizeof *k);
	enum hx_code code = HX_OK;

	if (!k)
		return error_set(err, HX_NO_MEMORY, "the keyring");
	k->options = *options;
	k->in_memory = strcmp(options->url, "sqlite::memory:") == 0;
	monitor_init(&k->monitor);
	arena_init(&k->page, PAGE_BYTES_MAX);
	if (getrandom(k->secret, sizeof k->secret, 0) != sizeof k->secret)
		code = error_set(err, HX_INTERNAL, "the system gives no random bytes");
	else if (!k->in_memory)
		code = keyring_start(k, err);
	else if (!(k->keys = keys_new(/* version= */ 0)))
		code = error_set(err, HX_NO_MEMORY, "the keyring");
	return HAND_OVER(code, k, keyring_free, ret);
}

void keyring_stop(struct keyring *k)
{
	if (!k)
		return;
	monitor_stop(&k->monitor, &k->stopping, &k->thread);
}

void keyring_free(struct keyring *k)
{
	if (!k)
		return;
	keyring_stop(k);
	db_close(k->db);
	keys_free(k->keys);
	arena_release(&k->page);
	monitor_release(&k->monitor);
	free(k);
}
