/* See artifacts.h. */
#include "support/artifacts.h"

#include <pthread.h>
#include <search.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/json.h"
#include "base/json_number.h"
#include "base/json_walk.h"
#include "support/await.h"

#define ATTEMPTS_MAX 100 /* of one key; more are not compared */

static const char *const paths[] = {"/render", "/delete", "/void", "/tell"};
#define PATHS_N (sizeof paths / sizeof *paths)

/* What there is under a key: an item's artifact, or the memory of a delete or a void. */
struct known {
	char key[SERVICE_ID_BYTES]; /* first: it is what the tree compares */
	struct artifact artifact;
	bool answered; /* a delete or a void: 200 or 404 */
	int status;
	bool failed_delete, failed_void; /* has had its chance to */
	size_t attempts_n;
	int64_t attempts[ATTEMPTS_MAX];
};

/* What there is to say about a batch. */
struct known_batch {
	char id[64];              /* first */
	size_t cleanups, deletes; /* begun, and answered */
	char told[SERVICE_BODY_BYTES], told_key[SERVICE_ID_BYTES];
};

struct artifacts {
	struct service *service;
	bool unnoted;
	pthread_mutex_t mutex;
	struct artifacts_habits habits;
	void *entries, *batches; /* trees (tsearch) */
	size_t there, made, repeated, begun[PATHS_N];
	uint64_t random;
	char wrong[600]; /* empty: nothing */
};

static int compare(const void *a, const void *b)
{
	return strcmp(a, b);
}

/* ---- under the mutex ---- */

static void go_wrong(struct artifacts *a, const struct service_call *call, const char *what)
{
	if (!a->wrong[0])
		snprintf(a->wrong, sizeof a->wrong, "%s %.100s, fence %lld, attempt %lld: %s: %.300s", call->path,
			 call->key, (long long)call->fence, (long long)call->attempt, what, call->body);
}

static struct known *find_or_add(struct artifacts *a, const char *key)
{
	struct known **at = tfind(key, &a->entries, compare), *entry;

	if (at)
		return *at;
	entry = calloc(1, sizeof *entry);
	snprintf(entry->key, sizeof entry->key, "%s", key);
	snprintf(entry->artifact.key, sizeof entry->artifact.key, "%.63s", key);
	tsearch(entry, &a->entries, compare);
	return entry;
}

static struct known_batch *batch_of(struct artifacts *a, const char *id)
{
	struct known_batch **at = tfind(id, &a->batches, compare), *batch;

	if (at)
		return *at;
	batch = calloc(1, sizeof *batch);
	snprintf(batch->id, sizeof batch->id, "%.63s", id);
	tsearch(batch, &a->batches, compare);
	return batch;
}

static bool draw(struct artifacts *a, unsigned percent)
{
	a->random ^= a->random << 13;
	a->random ^= a->random >> 7;
	a->random ^= a->random << 17;
	return (a->random >> 16) % 100 < percent;
}

/* The key of the item that the body is about: ID/N. */
static void item_key(struct artifacts *a, const struct service_call *call, char *ret_key, size_t bytes)
{
	struct hx_error err;
	struct json value;
	int64_t n;

	ret_key[0] = '\0';
	if (json_check(slice_str(call->body), &err, &value) || !json_find(value, slice_str("item"), &value) ||
	    !json_find(value, slice_str("n"), &value) || json_int64(value, &err, &n))
		return go_wrong(a, call, "it names no item");
	snprintf(ret_key, bytes, "%.200s/%lld", call->id, (long long)n);
}

static void make(struct artifacts *a, struct known *entry)
{
	if (entry->artifact.made)
		return;
	entry->artifact.made = entry->artifact.there = true;
	a->made++;
	a->there++;
}

/* Every start of an item counts as an attempt, so no two calls have the same. */
static void note_attempt(struct artifacts *a, struct known *entry, const struct service_call *call)
{
	for (size_t i = 0; i < entry->attempts_n; i++)
		if (entry->attempts[i] == call->attempt)
			go_wrong(a, call, "a second call of the same attempt");
	if (entry->attempts_n < ATTEMPTS_MAX)
		entry->attempts[entry->attempts_n++] = call->attempt;
}

static void begin_render(struct artifacts *a, const struct service_call *call)
{
	struct known *entry = find_or_add(a, call->key);
	char key[SERVICE_ID_BYTES];

	item_key(a, call, key, sizeof key);
	if (strcmp(key, call->key) != 0 || !call->fence || !call->attempt)
		go_wrong(a, call, "not the key of its item, or no fence, or no attempt");
	a->repeated += entry->artifact.made;
	entry->artifact.calls++;
	entry->artifact.late_calls += entry->artifact.voided;
	note_attempt(a, entry, call);
	if (!entry->artifact.voided && draw(a, a->habits.works_ms ? 50 : 0))
		make(a, entry);
}

static int end_render(struct artifacts *a, const struct service_call *call)
{
	struct known *entry = find_or_add(a, call->key);

	if (entry->artifact.voided) {
		entry->artifact.refused++;
		return 410;
	}
	if (!entry->artifact.made && draw(a, a->habits.fails))
		return 500;
	if (!entry->artifact.made && draw(a, a->habits.refuses))
		return 422;
	if (!entry->artifact.made && draw(a, a->habits.drops))
		return 0;
	make(a, entry);
	return draw(a, a->habits.drops) ? 0 : 200;
}

static int delete_it(struct artifacts *a, struct known *entry, const struct service_call *call)
{
	int status = entry->artifact.there ? 200 : 404;

	a->there -= entry->artifact.there;
	entry->artifact.there = false;
	entry->artifact.deletes++;
	batch_of(a, call->id)->deletes++;
	return status;
}

static int void_it(struct known *entry)
{
	entry->artifact.voided = true;
	entry->artifact.voids++;
	return 200;
}

/* In percent, and always the same for one key. */
static unsigned luck_of(const char *key)
{
	unsigned hash = 2166136261u;

	for (; *key; key++)
		hash = (hash ^ (unsigned char)*key) * 16777619u;
	return (hash >> 8) % 100;
}

/*
 * A delete or a void. One that goes wrong does so the first time only, and all that will have done so in the first pass: others
 * come to their end.
 */
static int undo(struct artifacts *a, const struct service_call *call, bool is_void)
{
	struct known *memory = find_or_add(a, call->key), *item;
	char key[SERVICE_ID_BYTES];
	unsigned luck;
	bool *failed;

	item_key(a, call, key, sizeof key);
	item = find_or_add(a, key);
	if (memory == item)
		go_wrong(a, call, "it has the key of the item itself");
	failed = is_void ? &item->failed_void : &item->failed_delete;
	luck = *failed ? 100 : luck_of(key);
	*failed = true;
	if (!memory->answered && luck < a->habits.fails)
		return 500;
	if (!memory->answered)
		memory->status = is_void ? void_it(item) : delete_it(a, item, call);
	memory->answered = true;
	return luck >= a->habits.fails && luck < a->habits.fails + a->habits.drops ? 0 : memory->status;
}

/* One key per batch: the end is told once, whoever delivers it how often. */
static int tell(struct artifacts *a, const struct service_call *call)
{
	struct known_batch *batch = batch_of(a, call->id);

	if (batch->told_key[0] && strcmp(batch->told_key, call->key) != 0)
		go_wrong(a, call, "its end was told before, under another key");
	snprintf(batch->told_key, sizeof batch->told_key, "%s", call->key);
	snprintf(batch->told, sizeof batch->told, "%s", call->body);
	return 200;
}

static size_t path_of(const char *path)
{
	size_t i = 0;

	while (i + 1 < PATHS_N && strcmp(paths[i], path) != 0)
		i++;
	return i;
}

/* ---- plays: in the connections' threads ---- */

static void work(void *context, const struct service_call *call)
{
	struct artifacts *a = context;
	int64_t ms;

	pthread_mutex_lock(&a->mutex);
	if (!call->key[0])
		go_wrong(a, call, "a call without a key");
	a->begun[path_of(call->path)]++;
	if (strcmp(call->path, "/render") == 0)
		begin_render(a, call);
	else if (strcmp(call->path, "/delete") == 0)
		batch_of(a, call->id)->cleanups++;
	(void)draw(a, 0);
	ms = a->habits.works_ms && strcmp(call->path, "/tell") != 0
		     ? (int64_t)((a->random >> 16) % (uint64_t)a->habits.works_ms)
		     : 0;
	pthread_mutex_unlock(&a->mutex);
	if (ms)
		nanosleep(&(struct timespec){ms / 1000, ms % 1000 * 1000000}, NULL);
}

static int respond(void *context, const struct service_call *call, char *body, size_t bytes)
{
	struct artifacts *a = context;
	int status;

	pthread_mutex_lock(&a->mutex);
	status = strcmp(call->path, "/render") == 0   ? end_render(a, call)
		 : strcmp(call->path, "/delete") == 0 ? undo(a, call, /* is_void= */ false)
		 : strcmp(call->path, "/void") == 0   ? undo(a, call, /* is_void= */ true)
						      : tell(a, call);
	pthread_mutex_unlock(&a->mutex);
	snprintf(body, bytes, "{\"artifact\":\"%s\"}", call->key);
	return status;
}

void artifacts_hold(struct artifacts *a, const char *path, bool hold)
{
	service_play(
		a->service, path,
		&(struct play){.hook = work, .respond = respond, .context = a, .hold = hold, .unnoted = a->unnoted});
}

struct artifacts *artifacts_new(struct service *service, bool unnoted)
{
	struct artifacts *a = calloc(1, sizeof *a);

	*a = (struct artifacts){
		.service = service, .unnoted = unnoted, .random = (uint64_t)await_now_ms() * 0x9e3779b97f4a7c15u | 1};
	pthread_mutex_init(&a->mutex, NULL);
	for (size_t i = 0; i < PATHS_N; i++)
		artifacts_hold(a, paths[i], /* hold= */ false);
	return a;
}

void artifacts_free(struct artifacts *a)
{
	if (!a)
		return;
	tdestroy(a->entries, free);
	tdestroy(a->batches, free);
	pthread_mutex_destroy(&a->mutex);
	free(a);
}

/* ---- for the test ---- */

void artifacts_behave(struct artifacts *a, const struct artifacts_habits *habits)
{
	pthread_mutex_lock(&a->mutex);
	a->habits = *habits;
	pthread_mutex_unlock(&a->mutex);
}

bool artifacts_find(struct artifacts *a, const char *key, struct artifact *ret)
{
	struct known **at;

	pthread_mutex_lock(&a->mutex);
	at = tfind(key, &a->entries, compare);
	if (at)
		*ret = (*at)->artifact;
	pthread_mutex_unlock(&a->mutex);
	return at;
}

static size_t read_size(struct artifacts *a, const size_t *size)
{
	size_t n;

	pthread_mutex_lock(&a->mutex);
	n = *size;
	pthread_mutex_unlock(&a->mutex);
	return n;
}

size_t artifacts_begun(struct artifacts *a, const char *path)
{
	return read_size(a, &a->begun[path_of(path)]);
}

size_t artifacts_there(struct artifacts *a)
{
	return read_size(a, &a->there);
}

size_t artifacts_made(struct artifacts *a)
{
	return read_size(a, &a->made);
}

size_t artifacts_repeated(struct artifacts *a)
{
	return read_size(a, &a->repeated);
}

void artifacts_cleaned(struct artifacts *a, const char *batch, size_t *ret_begun, size_t *ret_answered)
{
	struct known_batch **at;

	pthread_mutex_lock(&a->mutex);
	at = tfind(batch, &a->batches, compare);
	*ret_begun = at ? (*at)->cleanups : 0;
	*ret_answered = at ? (*at)->deletes : 0;
	pthread_mutex_unlock(&a->mutex);
}

void artifacts_told(struct artifacts *a, const char *batch, char *ret_body, size_t bytes)
{
	struct known_batch **at;

	pthread_mutex_lock(&a->mutex);
	at = tfind(batch, &a->batches, compare);
	snprintf(ret_body, bytes, "%s", at ? (*at)->told : "");
	pthread_mutex_unlock(&a->mutex);
}

const char *artifacts_wrong(struct artifacts *a)
{
	const char *wrong;

	pthread_mutex_lock(&a->mutex);
	wrong = a->wrong[0] ? a->wrong : NULL; /* the first one stays */
	pthread_mutex_unlock(&a->mutex);
	return wrong;
}
