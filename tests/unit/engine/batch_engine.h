/*
 * For tests of batches in a whole engine on both stores: its lanes (on PostgreSQL several, so that the turns of a batch end in others
 * than they were begun in), its port, its feeder and its janitor. What an item does is a native function of the test, which counts
 * calls, remembers what they have left behind, and waits at a gate when it is told to.
 */
#ifndef HX_TESTS_UNIT_ENGINE_BATCH_ENGINE_H
#define HX_TESTS_UNIT_ENGINE_BATCH_ENGINE_H

#include "engine/batches.h"

#include <fcntl.h>
#include <ftw.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/id.h"
#include "engine/engine.h"
#include "flow/account.h"
#include "flow/batch_cancel.h"
#include "flow/batch_load.h"
#include "flow/single.h"
#include "support/await.h"
#include "support/store.h"

#define DEADLINE_MS 60000
#define LEASE_MS 30000      /* which nobody who lives loses, also on a busy machine */
#define SOON_OVER_MS 4000   /* of who is to lose it, and calls are counted all the same */
#define OVER_AT_ONCE_MS 500 /* of who is to lose it, and it may be lost again */
#define CONCURRENCY 3       /* the port has more threads for native functions than that */
#define OPENING 10000
#define ITEMS_MAX 4000
#define WORKSPACE slice_str("default")

static const char definition[] =
	"{\"workflow\":\"render\",\"kind\":\"batch\",\"concurrency\":3,\"item_action\":\"work\",\"cleanup_action\":\"clean\","
	"\"retry\":{\"max_attempts\":2,\"initial\":\"10ms\"},\"actions\":{"
	"\"work\":{\"kind\":\"native\",\"function\":\"work\",\"effect\":\"keyed\"},"
	"\"clean\":{\"kind\":\"native\",\"function\":\"clean\",\"effect\":\"idempotent\"}}}";

/* ---- the service: what the actions do ---- */

static struct {
	pthread_mutex_t mutex;
	pthread_cond_t news;
	size_t gate; /* so many calls of items pass; the rest wait */
	size_t calls, cleanups;
	size_t in_flight, in_flight_max;
	struct engine *watched;          /* whose turns are counted; NULL: nobody's */
	size_t turns_max;                /* that it had under way while an item was called */
	size_t cleanups_to_fail;         /* so many fail first */
	size_t fail_every;               /* every so many calls of items fail; 0: none */
	unsigned char called[ITEMS_MAX]; /* by item */
	bool artifacts[ITEMS_MAX];
	bool garbled; /* a key was not batch_ID/N, or not the one of its item before */
} service = {.mutex = PTHREAD_MUTEX_INITIALIZER, .news = PTHREAD_COND_INITIALIZER};

static struct engine *engine;

/* The number of the item, from its key: batch_ID/N or batch_ID/N/cleanup/FENCE. */
static inline size_t item_of(struct slice key)
{
	char text[200];
	unsigned long n = ITEMS_MAX;

	snprintf(text, sizeof text, "%.*s", (int)key.n, key.p);
	if (sscanf(text, "batch_%*[^/]/%lu", &n) != 1 || n >= ITEMS_MAX) {
		service.garbled = true;
		n = 0;
	}
	return n;
}

static inline bool wait_at_gate(const struct native_call *call)
{
	while (service.calls > service.gate && !atomic_load(call->cancelled)) {
		struct timespec until;

		clock_gettime(CLOCK_REALTIME, &until);
		until.tv_nsec += 5000000;
		if (until.tv_nsec >= 1000000000) {
			until.tv_nsec -= 1000000000;
			until.tv_sec++;
		}
		pthread_cond_timedwait(&service.news, &service.mutex, &until); /* nobody announces the cancelling */
	}
	return !atomic_load(call->cancelled);
}

static inline enum act_outcome work(void *context, const struct native_call *call, struct strbuf *output)
{
	size_t n, turns = 0;
	enum act_outcome outcome = ACT_OK;

	(void)context;
	pthread_mutex_lock(&service.mutex);
	if (service.watched)
		turns = (size_t)atomic_load(&engine_parts(service.watched)->metrics->batch_turns);
	n = item_of(call->key);
	service.calls++;
	service.called[n]++;
	service.turns_max = turns > service.turns_max ? turns : service.turns_max;
	if (++service.in_flight > service.in_flight_max)
		service.in_flight_max = service.in_flight;
	if (service.fail_every && service.calls % service.fail_every == 0) {
		outcome = ACT_FAILED;
		strbuf_addf(output, "the renderer is tired");
	} else if (!wait_at_gate(call)) {
		outcome = ACT_UNKNOWN;
	} else {
		service.artifacts[n] = true;
		strbuf_addf(output, "{\"artifact\":%zu}", n);
	}
	service.in_flight--;
	pthread_mutex_unlock(&service.mutex);
	return outcome;
}

static inline enum act_outcome clean(void *context, const struct native_call *call, struct strbuf *output)
{
	enum act_outcome outcome = ACT_OK;

	(void)context;
	pthread_mutex_lock(&service.mutex);
	service.cleanups++;
	if (service.cleanups_to_fail > 0) {
		service.cleanups_to_fail--;
		strbuf_addf(output, "the store of artifacts is down");
		outcome = ACT_FAILED;
	} else {
		service.artifacts[item_of(call->key)] = false;
	}
	pthread_mutex_unlock(&service.mutex);
	return outcome;
}

static inline void open_gate(size_t to)
{
	pthread_mutex_lock(&service.mutex);
	service.gate = to;
	pthread_cond_broadcast(&service.news);
	pthread_mutex_unlock(&service.mutex);
}

static inline size_t calls(void)
{
	size_t n;

	pthread_mutex_lock(&service.mutex);
	n = service.calls;
	pthread_mutex_unlock(&service.mutex);
	return n;
}

static inline size_t artifacts(void)
{
	size_t n = 0;

	pthread_mutex_lock(&service.mutex);
	for (size_t i = 0; i < ITEMS_MAX; i++)
		n += service.artifacts[i];
	pthread_mutex_unlock(&service.mutex);
	return n;
}

static inline void service_reset(void)
{
	service.gate = SIZE_MAX;
	service.calls = service.cleanups = service.in_flight = service.in_flight_max = service.turns_max = 0;
	service.watched = NULL;
	service.cleanups_to_fail = service.fail_every = 0;
	service.garbled = false;
	memset(service.called, 0, sizeof service.called);
	memset(service.artifacts, 0, sizeof service.artifacts);
}

/* ---- the engine ---- */

static struct store *store;
static struct config config;
static struct natives natives;
static struct log logger;
static struct arena arena;
static const char *node;
static char dir[500], log_path[600];
static int log_fd;

static inline void engine_begin(void)
{
	struct engine_options options = {
		.db_url = store->url,
		.node = node,
		.lanes_n = 3, /* on PostgreSQL */
		.workflows_dir = dir,
		.config = &config,
		.natives = &natives,
		.clock = clock_system(),
		.log = &logger,
	};
	struct findings findings;
	struct hx_error err;

	findings_init(&findings, &arena);
	if (engine_new(&options, &findings, &engine, &err))
		fail_msg("%s: %s", err.detail, findings.first ? findings.first->text : "");
}

/* Of this engine, which stays as long as the test does. */
static inline void count_turns(void)
{
	pthread_mutex_lock(&service.mutex);
	service.watched = engine;
	pthread_mutex_unlock(&service.mutex);
}

/* Whatever is under way is dropped, as by a crash; the calls are told. */
static inline void engine_end(void)
{
	engine_stop(engine, /* drain_ms= */ 0);
	engine_free(engine);
	engine = NULL;
}

/* Claims from here on are short. */
static inline void shorten_lease(int64_t ms)
{
	engine_end();
	config.lease_ms = ms;
	engine_begin();
}

static inline int set_up(void **state)
{
	const char *tmp = getenv("TMPDIR");
	char path[600];
	FILE *file;
	struct hx_error err;

	node = "here";
	service_reset();
	arena_init(&arena, 64u << 20);
	snprintf(dir, sizeof dir, "%s/batches.XXXXXX", tmp ? tmp : "/tmp");
	if (!mkdtemp(dir))
		return -1;
	snprintf(path, sizeof path, "%s/render.json", dir);
	file = fopen(path, "w");
	fputs(definition, file);
	fclose(file);
	snprintf(log_path, sizeof log_path, "%s/log", dir);
	log_fd = open(log_path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	log_init(&logger, log_fd, LOG_LEVEL_WARN, clock_system());
	config_init(&config);
	config.lease_ms = LEASE_MS;
	natives = (struct natives){0};
	assert_int_equal(natives_add(&natives, "work", work, NULL, &err), HX_OK);
	assert_int_equal(natives_add(&natives, "clean", clean, NULL, &err), HX_OK);
	store = store_new(*(enum store_kind *)*state);
	engine_begin();
	return 0;
}

static inline int remove_one(const char *path, const struct stat *st, int flag, struct FTW *ftw)
{
	(void)st, (void)flag, (void)ftw;
	return remove(path);
}

static inline int tear_down(void **state)
{
	(void)state;
	open_gate(SIZE_MAX);
	if (engine)
		engine_end();
	close(log_fd);
	store_free(store);
	arena_release(&arena);
	nftw(dir, remove_one, 16, FTW_DEPTH | FTW_PHYS);
	return 0;
}

/* How many lines of the log have this text. */
static inline size_t told(const char *text)
{
	char line[4000];
	FILE *file = fopen(log_path, "r");
	size_t n = 0;

	while (fgets(line, sizeof line, file))
		n += strstr(line, text) != NULL;
	fclose(file);
	return n;
}

/* ---- tasks, run to their end in a lane ---- */

struct asking {
	struct seat seat;
	_Atomic int done;
	enum hx_code code;
};

static inline void errand_done(struct seat *seat, enum hx_code code)
{
	struct asking *errand = (struct asking *)seat;

	errand->code = code;
	atomic_store(&errand->done, 1);
}

static inline enum hx_code run(struct task *task, int64_t subject)
{
	struct asking errand = {.seat = {.task = task, .done = errand_done}};

	assert_int_equal(engine_submit(engine, (uint64_t)subject, &errand.seat), HX_OK);
	AWAIT(DEADLINE_MS, atomic_load(&errand.done));
	return errand.code;
}

static inline void build_account(const struct single *single, struct unit *unit)
{
	account_create(unit, &single->stamp, WORKSPACE, slice_str("alice"), single->fresh_id,
		       *(int64_t *)single->context);
}

static inline enum hx_code won(struct single *single, const struct unit_result *result)
{
	(void)single;
	return result->verdict == UNIT_WON ? HX_OK : HX_CONCURRENCY_ERROR;
}

static inline void make_account(int64_t balance)
{
	struct single single;

	single_init(&single, &balance, build_account, won);
	assert_int_equal(run(&single.task, 1), HX_OK);
}

static inline void credit(int64_t amount, const char *key)
{
	struct account_credit_request rq = {WORKSPACE, slice_str("alice"), slice_str(key), amount};
	struct account_credit credit;

	account_credit_init(&credit, &rq);
	assert_int_equal(run(&credit.task, 1), HX_OK);
}

static inline void build_balance(const struct single *single, struct unit *unit)
{
	(void)single;
	account_read(unit, WORKSPACE, slice_str("alice"));
}

static inline enum hx_code take_balance(struct single *single, const struct unit_result *result)
{
	*(int64_t *)single->context = db_cell(&result->rows[0], 0, 1)->i;
	return HX_OK;
}

static inline int64_t balance(void)
{
	struct single single;
	int64_t found = -1;

	single_init(&single, &found, build_balance, take_balance);
	assert_int_equal(run(&single.task, 1), HX_OK);
	return found;
}

struct look {
	int64_t subject;
	struct batch_row row;
};

static inline void build_look(const struct single *single, struct unit *unit)
{
	batch_read(unit, WORKSPACE, ((struct look *)single->context)->subject);
}

static inline enum hx_code take_look(struct single *single, const struct unit_result *result)
{
	struct look *look = single->context;

	batch_row_take(&result->rows[0], 0, engine_parts(engine)->batch_policy, &arena, &look->row);
	return HX_OK;
}

static inline struct batch_row look(int64_t subject)
{
	struct look look = {.subject = subject};
	struct single single;

	single_init(&single, &look, build_look, take_look);
	assert_int_equal(run(&single.task, subject), HX_OK);
	return look.row;
}

static inline bool is_in(int64_t subject, const char *status)
{
	return strcmp(look(subject).status, status) == 0;
}

/* Items of cost 1, 2, 3, 1, 2, … */
static inline int64_t load(size_t items_n, bool held)
{
	struct strbuf items;
	struct batch_load_request rq = {
		.workspace = WORKSPACE,
		.items_n = (int64_t)items_n,
		.machine = definitions_batch(engine_parts(engine)->definitions, slice_str("render")),
		.account = slice_str("alice"),
		.requester = slice_str("ann"),
		.held = held,
		.policy = engine_parts(engine)->batch_policy,
	};
	struct batch_load load;

	assert_non_null(rq.machine);
	strbuf_init(&items, 1u << 20);
	strbuf_add_char(&items, '[');
	for (size_t i = 0; i < items_n; i++)
		strbuf_addf(&items, "%s{\"cost\":%zu,\"input\":{\"i\":%zu}}", i ? "," : "", i % 3 + 1, i);
	strbuf_add_char(&items, ']');
	rq.items = json_trust(strbuf_slice(&items));
	batch_load_init(&load, &rq, &arena);
	assert_int_equal(run(&load.task, 1), HX_OK);
	strbuf_release(&items);
	return load.row.subject;
}

static inline int64_t cost_of(size_t items_n)
{
	int64_t sum = 0;

	for (size_t i = 0; i < items_n; i++)
		sum += (int64_t)(i % 3) + 1;
	return sum;
}

static inline struct batch_cancel cancel(int64_t subject)
{
	struct batch_cancel cancel;

	batch_cancel_init(&cancel, WORKSPACE, subject, engine_parts(engine)->batch_policy, &arena);
	assert_int_equal(run(&cancel.task, subject), HX_OK);
	return cancel;
}

/* What holds of money after the end of the only batch. */
static inline void assert_books(int64_t subject, int64_t opening)
{
	struct batch_row row = look(subject);

	assert_int_equal(balance(), opening - row.charged + row.refunded);
	assert_int_equal(row.running, 0);
}

static enum store_kind sqlite = STORE_SQLITE_FILE, postgres = STORE_POSTGRES;

#define ON(name, store)                                                                                                \
	{                                                                                                              \
#name " on " #store, name, set_up, tear_down, &store                                                   \
	}
#define TEST(name) ON(name, sqlite), ON(name, postgres)

#endif
