/* See user_store.h. */
#include "support/user_store.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

struct record {
	bool taken, completed, taken_over, hold;
	unsigned char key[HX_GATE_KEY_BYTES], fingerprint[HX_GATE_KEY_BYTES], token[HX_GATE_TOKEN_BYTES];
	unsigned char caller[HX_GATE_KEY_BYTES]; /* all zero: not known */
	int64_t created_ms, lease_until_ms, expires_ms;
	const char *response;
	size_t response_bytes;
};

struct user_store {
	struct hx_gate_store table;
	struct clock *clock;
	pthread_mutex_t mutex; /* guards all below */
	bool down;
	struct record records[USER_STORE_RECORDS_MAX];
	/* Responses are kept to the end: a caller may still read one. */
	struct paper {
		struct paper *next;
		char bytes[];
	} * papers;
};

static struct record *find(struct user_store *u, const unsigned char *key)
{
	int64_t now_ms = clock_wall(u->clock).ms;

	for (size_t i = 0; i < USER_STORE_RECORDS_MAX; i++) {
		struct record *record = &u->records[i];

		if (record->taken && memcmp(record->key, key, sizeof record->key) == 0) {
			record->taken = record->expires_ms > now_ms;
			return record->taken ? record : NULL;
		}
	}
	return NULL;
}

static struct record *enter(struct user_store *u, const struct hx_gate_claim *claim)
{
	for (size_t i = 0; i < USER_STORE_RECORDS_MAX; i++) {
		struct record *record = &u->records[i];

		if (record->taken)
			continue;
		*record = (struct record){.taken = true, .created_ms = clock_wall(u->clock).ms};
		memcpy(record->key, claim->key, sizeof record->key);
		memcpy(record->fingerprint, claim->fingerprint, sizeof record->fingerprint);
		memcpy(record->token, claim->token, sizeof record->token);
		return record;
	}
	return NULL;
}

static bool is_holder(const struct record *record, const unsigned char *token)
{
	return memcmp(record->token, token, sizeof record->token) == 0;
}

static const unsigned char nobody[HX_GATE_KEY_BYTES];

static bool is_known(const unsigned char *caller)
{
	return memcmp(caller, nobody, sizeof nobody) != 0;
}

static enum hx_gate_verdict judge(const struct record *record, const struct hx_gate_claim *claim, int64_t now_ms)
{
	if (is_known(record->caller) && is_known(claim->caller) &&
	    memcmp(record->caller, claim->caller, sizeof record->caller) != 0)
		return HX_GATE_OTHER_CALLER;
	if (memcmp(record->fingerprint, claim->fingerprint, sizeof record->fingerprint) != 0)
		return HX_GATE_MISMATCHED;
	if (record->completed)
		return HX_GATE_COMPLETED;
	if (is_holder(record, claim->token))
		return HX_GATE_ACQUIRED;
	if (record->lease_until_ms > now_ms)
		return HX_GATE_IN_FLIGHT;
	return record->hold ? HX_GATE_HELD : HX_GATE_ACQUIRED;
}

static enum hx_code acquire(void *data, const struct hx_gate_claim *claim, struct hx_gate_found *ret_found)
{
	struct user_store *u = data;
	int64_t now_ms;
	struct record *record;
	enum hx_code code = HX_STORE_UNAVAILABLE;

	pthread_mutex_lock(&u->mutex);
	now_ms = clock_wall(u->clock).ms;
	record = u->down ? NULL : find(u, claim->key);
	if (!record && !u->down)
		record = enter(u, claim);
	if (record) {
		code = HX_OK;
		*ret_found = (struct hx_gate_found){.verdict = judge(record, claim, now_ms),
						    .created_ms = record->created_ms,
						    .lease_left_ms = record->lease_until_ms - now_ms,
						    .response = record->response,
						    .response_bytes = record->response_bytes};
		if (ret_found->verdict == HX_GATE_ACQUIRED) {
			record->taken_over |= !is_holder(record, claim->token);
			memcpy(record->token, claim->token, sizeof record->token);
			if (is_known(claim->caller))
				memcpy(record->caller, claim->caller, sizeof record->caller);
			record->lease_until_ms = now_ms + claim->lease_ms;
			record->hold = claim->hold;
			record->expires_ms = claim->hold ? INT64_MAX : record->lease_until_ms + claim->ttl_ms;
		}
	}
	pthread_mutex_unlock(&u->mutex);
	return code;
}

static const char *keep(struct user_store *u, const void *response, size_t bytes)
{
	struct paper *paper = malloc(sizeof *paper + bytes);

	if (!paper)
		return NULL;
	paper->next = u->papers;
	u->papers = paper;
	if (bytes)
		memcpy(paper->bytes, response, bytes);
	return paper->bytes;
}

static enum hx_code complete(void *data, const unsigned char *key, const unsigned char *token, const void *response,
			     size_t response_bytes, int64_t ttl_ms, int *ret_stale)
{
	struct user_store *u = data;
	struct record *record;
	enum hx_code code = HX_OK;

	pthread_mutex_lock(&u->mutex);
	record = find(u, key);
	if (u->down) {
		code = HX_STORE_UNAVAILABLE;
	} else if (!record || !is_holder(record, token)) {
		*ret_stale = 1;
	} else if (!record->completed) {
		record->response = keep(u, response, response_bytes);
		record->response_bytes = response_bytes;
		record->completed = record->response;
		record->expires_ms = clock_wall(u->clock).ms + ttl_ms;
		code = record->completed ? HX_OK : HX_STORE_UNAVAILABLE;
	}
	pthread_mutex_unlock(&u->mutex);
	return code;
}

static enum hx_code remove_own(void *data, const unsigned char *key, const unsigned char *token, int *ret_stale)
{
	struct user_store *u = data;
	struct record *record;
	bool down;

	pthread_mutex_lock(&u->mutex);
	down = u->down;
	record = down ? NULL : find(u, key);
	if (record && (record->completed || !is_holder(record, token)))
		*ret_stale = 1;
	else if (record && record->taken_over)
		record->lease_until_ms = clock_wall(u->clock).ms;
	else if (record)
		record->taken = false;
	pthread_mutex_unlock(&u->mutex);
	return down ? HX_STORE_UNAVAILABLE : HX_OK;
}

static enum hx_code sweep(void *data, int64_t budget, int64_t *ret_removed)
{
	struct user_store *u = data;

	pthread_mutex_lock(&u->mutex);
	for (size_t i = 0; i < USER_STORE_RECORDS_MAX && *ret_removed < budget; i++)
		if (u->records[i].taken && u->records[i].expires_ms <= clock_wall(u->clock).ms) {
			u->records[i].taken = false;
			++*ret_removed;
		}
	pthread_mutex_unlock(&u->mutex);
	return HX_OK;
}

void user_store_forget(struct user_store *u, const unsigned char *key)
{
	pthread_mutex_lock(&u->mutex);
	find(u, key)->taken = false;
	pthread_mutex_unlock(&u->mutex);
}

void user_store_set_down(struct user_store *u, bool down)
{
	pthread_mutex_lock(&u->mutex);
	u->down = down;
	pthread_mutex_unlock(&u->mutex);
}

const struct hx_gate_store *user_store_table(const struct user_store *u)
{
	return &u->table;
}

struct user_store *user_store_new(struct clock *clock)
{
	struct user_store *u = calloc(1, sizeof *u);

	if (!u)
		return NULL;
	u->table = (struct hx_gate_store){HX_SIZE(hx_gate_store), u, acquire, complete, remove_own, sweep};
	u->clock = clock;
	pthread_mutex_init(&u->mutex, NULL);
	return u;
}

void user_store_free(struct user_store *u)
{
	if (!u)
		return;
	for (struct paper *paper = u->papers, *next; paper; paper = next) {
		next = paper->next;
		free(paper);
	}
	pthread_mutex_destroy(&u->mutex);
	free(u);
}
