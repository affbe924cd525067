/*
 * Batches in a whole engine on both stores: its lanes (on PostgreSQL several, so that the turns of a batch end in others than they
 * were begun in), its port, its feeder and its janitor. What an item does is a native function of the test, which counts calls, remembers what they have left behind, and waits at a gate when it is told to.
 */
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
#define SOON_OVER_MS 1500   /* of who is to lose it, and calls are counted all the same */
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
	size_t turns_max;                /* that the engine had under way while an item was called */
	size_t cleanups_to_fail;         /* so many fail first */
	size_t fail_every;               /* every so many calls of items fail; 0: none */
	unsigned char called[ITEMS_MAX]; /* by item */
	bool artifacts[ITEMS_MAX];
	bool garbled; /* a key was not batch_ID/N, or not the one of its item before */
} service = {.mutex = PTHREAD_MUTEX_INITIALIZER, .news = PTHREAD_COND_INITIALIZER};

static struct engine *engine;

/* The number of the item, from its key: batch_ID/N or batch_ID/N/cleanup/FENCE. */
static size_t item_of(struct slice key)
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

static bool wait_at_gate(const struct native_call *call)
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

static enum act_outcome work(void *context, const struct native_call *call, struct strbuf *output)
{
	size_t n, turns = engine ? (size_t)atomic_load(&engine_metrics(engine)->batch_turns) : 0;
	enum act_outcome outcome = ACT_OK;

	(void)context;
	pthread_mutex_lock(&service.mutex);
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

static enum act_outcome clean(void *context, const struct native_call *call, struct strbuf *output)
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

static void open_gate(size_t to)
{
	pthread_mutex_lock(&service.mutex);
	service.gate = to;
	pthread_cond_broadcast(&service.news);
	pthread_mutex_unlock(&service.mutex);
}

static size_t calls(void)
{
	size_t n;

	pthread_mutex_lock(&service.mutex);
	n = service.calls;
	pthread_mutex_unlock(&service.mutex);
	return n;
}

static size_t artifacts(void)
{
	size_t n = 0;

	pthread_mutex_lock(&service.mutex);
	for (size_t i = 0; i < ITEMS_MAX; i++)
		n += service.artifacts[i];
	pthread_mutex_unlock(&service.mutex);
	return n;
}

static void service_reset(void)
{
	service.gate = SIZE_MAX;
	service.calls = service.cleanups = service.in_flight = service.in_flight_max = service.turns_max = 0;
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

static void engine_begin(void)
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

/* Whatever is under way is dropped, as by a crash; the calls are told. */
static void engine_end(void)
{
	engine_stop(engine, /* drain_ms= */ 0);
	engine_free(engine);
	engine = NULL;
}

/* Claims from here on are short. */
static void shorten_lease(int64_t ms)
{
	engine_end();
	config.lease_ms = ms;
	engine_begin();
}

static int set_up(void **state)
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

static int remove_one(const char *path, const struct stat *st, int flag, struct FTW *ftw)
{
	(void)st, (void)flag, (void)ftw;
	return remove(path);
}

static int tear_down(void **state)
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
static size_t told(const char *text)
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

static void errand_done(struct seat *seat, enum hx_code code)
{
	struct asking *errand = (struct asking *)seat;

	errand->code = code;
	atomic_store(&errand->done, 1);
}

static enum hx_code run(struct task *task, int64_t subject)
{
	struct asking errand = {.seat = {.task = task, .done = errand_done}};

	assert_int_equal(engine_submit(engine, (uint64_t)subject, &errand.seat), HX_OK);
	AWAIT(DEADLINE_MS, atomic_load(&errand.done));
	return errand.code;
}

static void build_account(const struct single *single, struct unit *unit)
{
	account_create(unit, &single->stamp, WORKSPACE, slice_str("alice"), single->fresh_id,
		       *(int64_t *)single->context);
}

static enum hx_code won(struct single *single, const struct unit_result *result)
{
	(void)single;
	return result->verdict == UNIT_WON ? HX_OK : HX_CONCURRENCY_ERROR;
}

static void make_account(int64_t balance)
{
	struct single single;

	single_init(&single, &balance, build_account, won);
	assert_int_equal(run(&single.task, 1), HX_OK);
}

static void credit(int64_t amount, const char *key)
{
	struct account_credit_request rq = {WORKSPACE, slice_str("alice"), slice_str(key), amount};
	struct account_credit credit;

	account_credit_init(&credit, &rq);
	assert_int_equal(run(&credit.task, 1), HX_OK);
}

static void build_balance(const struct single *single, struct unit *unit)
{
	(void)single;
	account_read(unit, WORKSPACE, slice_str("alice"));
}

static enum hx_code take_balance(struct single *single, const struct unit_result *result)
{
	*(int64_t *)single->context = db_cell(&result->rows[0], 0, 1)->i;
	return HX_OK;
}

static int64_t balance(void)
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

static void build_look(const struct single *single, struct unit *unit)
{
	batch_read(unit, WORKSPACE, ((struct look *)single->context)->subject);
}

static enum hx_code take_look(struct single *single, const struct unit_result *result)
{
	struct look *look = single->context;

	batch_row_take(&result->rows[0], 0, batches_policy(engine_batches(engine)), &arena, &look->row);
	return HX_OK;
}

static struct batch_row look(int64_t subject)
{
	struct look look = {.subject = subject};
	struct single single;

	single_init(&single, &look, build_look, take_look);
	assert_int_equal(run(&single.task, subject), HX_OK);
	return look.row;
}

static bool is_in(int64_t subject, const char *status)
{
	return strcmp(look(subject).status, status) == 0;
}

/* Items of cost 1, 2, 3, 1, 2, … */
static int64_t load(size_t items_n, bool held)
{
	struct strbuf items;
	struct batch_load_request rq = {
		.workspace = WORKSPACE,
		.items_n = (int64_t)items_n,
		.machine = engine_batch(engine, slice_str("render")),
		.account = slice_str("alice"),
		.requester = slice_str("ann"),
		.held = held,
		.policy = batches_policy(engine_batches(engine)),
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

static int64_t cost_of(size_t items_n)
{
	int64_t sum = 0;

	for (size_t i = 0; i < items_n; i++)
		sum += (int64_t)(i % 3) + 1;
	return sum;
}

static struct batch_cancel cancel(int64_t subject)
{
	struct batch_cancel cancel;

	batch_cancel_init(&cancel, WORKSPACE, subject, batches_policy(engine_batches(engine)), &arena);
	assert_int_equal(run(&cancel.task, subject), HX_OK);
	return cancel;
}

/* What holds of money behind the end of the only batch. */
static void assert_books(int64_t subject, int64_t opening)
{
	struct batch_row row = look(subject);

	assert_int_equal(balance(), opening - row.charged + row.refunded);
	assert_int_equal(row.running, 0);
}

/* ---- tests ---- */

static void all_items_are_done_once_and_some_at_a_time(void **state)
{
	int64_t batch;
	struct batch_row row;

	(void)state;
	make_account(OPENING);
	open_gate(0);
	batch = load(50, /* held= */ false);
	AWAIT(DEADLINE_MS, calls() == CONCURRENCY); /* the gate is closed: all that may be begun have been */
	open_gate(SIZE_MAX);
	AWAIT(DEADLINE_MS, is_in(batch, BATCH_COMPLETED));
	row = look(batch);
	assert_int_equal(row.succeeded, 50);
	assert_int_equal(row.charged, cost_of(50));
	assert_books(batch, OPENING);
	assert_int_equal(service.calls, 50);
	assert_int_equal(service.in_flight_max, CONCURRENCY);
	assert_int_equal(artifacts(), 50);
	assert_false(service.garbled);
	for (size_t i = 0; i < 50; i++)
		assert_int_equal(service.called[i], 1);
	AWAIT(DEADLINE_MS, atomic_load(&engine_metrics(engine)->batches_driven) == 1);
	assert_int_equal(atomic_load(&engine_metrics(engine)->batch_items_succeeded), 50);
	assert_int_equal(atomic_load(&engine_metrics(engine)->batch_turns), 0);
	assert_int_equal(told("batch"), 0);
}

static void failed_items_are_tried_again_and_returned(void **state)
{
	int64_t batch;
	struct batch_row row;

	(void)state;
	make_account(OPENING);
	service.fail_every = 2; /* and two attempts each: some fail for good */
	batch = load(30, /* held= */ false);
	AWAIT(DEADLINE_MS, is_in(batch, BATCH_COMPLETED));
	row = look(batch);
	assert_int_equal(row.succeeded + row.failed, 30);
	assert_int_equal((size_t)row.succeeded, artifacts());
	assert_books(batch, OPENING);
	assert_int_equal((int64_t)atomic_load(&engine_metrics(engine)->batch_items_failed), row.failed);
}

static void a_cancel_in_the_middle_gives_all_back(void **state)
{
	int64_t batch;
	struct batch_row row;

	(void)state;
	make_account(OPENING);
	open_gate(10);
	batch = load(50, /* held= */ false);
	AWAIT(DEADLINE_MS, calls() == 10 + CONCURRENCY);
	assert_true(cancel(batch).accepted);
	open_gate(SIZE_MAX);
	AWAIT(DEADLINE_MS, is_in(batch, BATCH_CANCELLED));
	row = look(batch);
	assert_int_equal(service.calls, 10 + CONCURRENCY); /* nothing was begun behind the flag */
	assert_int_equal(row.cancelled, 50);
	assert_int_equal(row.refunded, cost_of(10 + CONCURRENCY));
	assert_int_equal(row.charged, row.refunded);
	assert_int_equal(balance(), OPENING);
	assert_int_equal(artifacts(), 0);
	assert_int_equal(service.cleanups, 10 + CONCURRENCY);
	assert_true(cancel(batch).was_over);
}

/* What a stopped engine has left is past its time a lease later: the next one takes it over, with what is in doubt. */
static void what_a_stop_has_left_is_taken_over(void **state)
{
	int64_t batch;
	struct batch_row row;

	(void)state;
	shorten_lease(SOON_OVER_MS);
	make_account(OPENING);
	open_gate(10);
	batch = load(50, /* held= */ false);
	AWAIT(DEADLINE_MS, calls() == 10 + CONCURRENCY);
	engine_end();
	open_gate(SIZE_MAX);
	engine_begin();
	AWAIT(DEADLINE_MS, is_in(batch, BATCH_COMPLETED));
	row = look(batch);
	assert_int_equal(row.succeeded, 50);
	assert_int_equal(row.charged, cost_of(50));
	assert_books(batch, OPENING);
	assert_int_equal(artifacts(), 50);
	/* Those that were at the gate were called again, under the same key, and nothing else was. */
	assert_int_equal(service.calls, 50 + CONCURRENCY);
	assert_int_equal(atomic_load(&engine_metrics(engine)->batches_taken_over), 1);
	assert_int_equal(told("was taken over"), 1);
}

/* The same with a cancel before: whoever takes it over tears it down. */
static void what_was_flagged_is_taken_over_into_teardown(void **state)
{
	int64_t batch;

	(void)state;
	shorten_lease(SOON_OVER_MS);
	make_account(OPENING);
	open_gate(10);
	batch = load(50, /* held= */ false);
	AWAIT(DEADLINE_MS, calls() == 10 + CONCURRENCY);
	assert_true(cancel(batch).accepted);
	engine_end();
	open_gate(SIZE_MAX);
	engine_begin();
	AWAIT(DEADLINE_MS, is_in(batch, BATCH_CANCELLED));
	assert_int_equal(balance(), OPENING);
	assert_int_equal(artifacts(), 0);
	assert_int_equal(service.calls, 10 + CONCURRENCY);
}

static void money_that_comes_makes_it_go_on(void **state)
{
	int64_t batch;
	struct batch_row row;

	(void)state;
	make_account(10); /* 1 + 2 + 3 + 1 + 2, and 1 is left for one of 3 */
	batch = load(12, /* held= */ false);
	AWAIT(DEADLINE_MS, is_in(batch, BATCH_OUT_OF_CREDIT));
	row = look(batch);
	assert_int_equal(row.succeeded, 5);
	assert_int_equal(row.needs, 3);
	assert_int_equal(balance(), 1);
	assert_false(row.owned);
	credit(1, "too little");
	assert_true(is_in(batch, BATCH_OUT_OF_CREDIT));
	credit(100, "enough");
	AWAIT(DEADLINE_MS, is_in(batch, BATCH_COMPLETED));
	assert_int_equal(look(batch).succeeded, 12);
	assert_int_equal(balance(), 111 - cost_of(12));
}

/* What could not be deleted keeps the batch from its end; the money is back already. */
static void a_cleanup_that_fails_is_tried_again(void **state)
{
	int64_t batch;
	struct batch_row row;

	(void)state;
	make_account(OPENING);
	open_gate(0);
	batch = load(20, /* held= */ false);
	AWAIT(DEADLINE_MS, calls() == CONCURRENCY);
	pthread_mutex_lock(&service.mutex);
	service.cleanups_to_fail = CONCURRENCY + 1; /* the whole first pass, and one of the second */
	pthread_mutex_unlock(&service.mutex);
	assert_true(cancel(batch).accepted);
	open_gate(SIZE_MAX);
	AWAIT(DEADLINE_MS, look(batch).cleanups == 1);
	row = look(batch);
	assert_string_equal(row.status, BATCH_CANCELLING);
	assert_int_equal(balance(), OPENING);
	assert_int_equal(artifacts(), CONCURRENCY);
	assert_true(slice_is(row.error, "the store of artifacts is down"));
	AWAIT(DEADLINE_MS, is_in(batch, BATCH_CANCELLED));
	row = look(batch);
	assert_int_equal(row.cleanups, 2);
	assert_null(row.error.p);
	assert_int_equal(artifacts(), 0);
	assert_int_equal(balance(), OPENING);
	assert_int_equal(told("was not deleted"), 2);
	assert_int_equal(told("ACTION_FAILED"), 2);
}

static void count_done(void *context)
{
	atomic_fetch_add((_Atomic int *)context, 1);
}

/* Whoever cancels one that was never begun tears it down at once, and hears when that is over. */
static void a_caller_tears_down_what_it_has_seized(void **state)
{
	int64_t batch;
	struct batch_cancel c;
	_Atomic int done = 0;

	(void)state;
	make_account(OPENING);
	batch = load(700, /* held= */ true); /* more than a slice */
	c = cancel(batch);
	assert_true(c.seized);
	assert_true(is_in(batch, BATCH_CANCELLING));
	assert_true(batches_tear_down(engine_batches(engine), &c.hold, count_done, &done));
	AWAIT(DEADLINE_MS, atomic_load(&done) == 1);
	assert_true(is_in(batch, BATCH_CANCELLED));
	assert_int_equal(look(batch).cancelled, 700);
	assert_int_equal(balance(), OPENING);
	assert_int_equal(service.calls, 0);
}

/* Its canceller was lost behind the seize: the claim lapses, and the janitor finds it. */
static void what_a_lost_canceller_has_seized_is_torn_down(void **state)
{
	int64_t batch;

	(void)state;
	shorten_lease(OVER_AT_ONCE_MS);
	make_account(OPENING);
	batch = load(5, /* held= */ true);
	assert_true(cancel(batch).seized);
	AWAIT(DEADLINE_MS, is_in(batch, BATCH_CANCELLED));
	assert_true(atomic_load(&engine_metrics(engine)->batches_taken_over) >= 1);
}

/* Of two tenures of one batch in one process the later fence has it, and the other one ends. */
static void an_overtaken_tenure_ends(void **state)
{
	int64_t batch;
	struct batch_cancel c;
	struct batch_hold stale;
	_Atomic int done = 0;

	(void)state;
	make_account(OPENING);
	batch = load(5, /* held= */ true);
	c = cancel(batch);
	stale = c.hold;
	stale.fence--;
	assert_true(batches_tear_down(engine_batches(engine), &stale, count_done, &done));
	AWAIT(DEADLINE_MS, atomic_load(&done) == 1);
	assert_true(is_in(batch, BATCH_CANCELLING));
	assert_true(batches_tear_down(engine_batches(engine), &c.hold, count_done, &done));
	AWAIT(DEADLINE_MS, atomic_load(&done) == 2);
	assert_true(is_in(batch, BATCH_CANCELLED));
}

/* A held one is started and cancelled in the same moment. */
static struct batch_cancel cancel_while_it_starts(int64_t batch)
{
	const struct batch_policy *policy = batches_policy(engine_batches(engine));
	struct batch_verb_request rq = {
		.kind = BATCH_START, .workspace = WORKSPACE, .subject = batch, .policy = policy};
	struct batch_verb verb;
	struct batch_cancel c;
	struct asking start = {.seat = {.task = &verb.task, .done = errand_done}};
	struct arena verbs;

	arena_init(&verbs, 1u << 20);
	batch_verb_init(&verb, &rq, &verbs);
	batch_cancel_init(&c, WORKSPACE, batch, policy, &arena);
	assert_int_equal(engine_submit(engine, (uint64_t)batch, &start.seat), HX_OK);
	assert_int_equal(run(&c.task, batch), HX_OK);
	AWAIT(DEADLINE_MS, atomic_load(&start.done)); /* it may come too late */
	arena_release(&verbs);
	return c;
}

/* Cancel against claim: whoever seizes it first, it is torn down; and a canceller that did knows that by the end of its own. */
static void a_cancel_meets_the_first_claim(void **state)
{
	size_t seized = 0, accepted = 0;

	(void)state;
	make_account(OPENING);
	for (size_t i = 0; i < 100; i++) {
		int64_t batch;
		struct batch_cancel c;
		_Atomic int done = 0;

		open_gate(0); /* it does not come to its end */
		batch = load(3, /* held= */ i % 2 == 0);
		c = i % 2 ? cancel(batch) : cancel_while_it_starts(batch);
		open_gate(SIZE_MAX);
		if (c.seized) {
			assert_true(batches_tear_down(engine_batches(engine), &c.hold, count_done, &done));
			AWAIT(DEADLINE_MS, atomic_load(&done) == 1);
			assert_true(is_in(batch, BATCH_CANCELLED));
		} else {
			AWAIT(DEADLINE_MS, is_in(batch, BATCH_CANCELLED));
		}
		seized += c.seized;
		accepted += c.accepted;
	}
	assert_true(seized > 0 && accepted > 0);
	assert_int_equal(balance(), OPENING);
	assert_int_equal(artifacts(), 0);
}

static void tearing_down_is_refused_by_a_stopped_engine(void **state)
{
	int64_t batch;
	struct batch_cancel c;
	_Atomic int done = 0;

	(void)state;
	make_account(OPENING);
	batch = load(5, /* held= */ true);
	c = cancel(batch);
	engine_stop(engine, /* drain_ms= */ 0);
	assert_false(batches_tear_down(engine_batches(engine), &c.hold, count_done, &done));
	assert_int_equal(atomic_load(&done), 0);
}

/* Whoever waits for a teardown is told, also by a stop in the middle of it. */
static void a_stop_tells_whoever_waits(void **state)
{
	int64_t batch;
	struct batch_cancel c;
	_Atomic int done = 0;

	(void)state;
	shorten_lease(OVER_AT_ONCE_MS);
	make_account(OPENING);
	batch = load(3000, /* held= */ true);
	c = cancel(batch);
	assert_true(batches_tear_down(engine_batches(engine), &c.hold, count_done, &done));
	engine_end();
	assert_int_equal(atomic_load(&done), 1);
	engine_begin();
	AWAIT(DEADLINE_MS, is_in(batch, BATCH_CANCELLED));
	assert_int_equal(look(batch).cancelled, 3000);
}

/* Memory is bounded by what is under way: never more turns than hands, however many items. */
static void many_items_take_no_more_memory(void **state)
{
	int64_t batch;

	(void)state;
	make_account(OPENING);
	batch = load(2000, /* held= */ false);
	AWAIT(3 * DEADLINE_MS, is_in(batch, BATCH_COMPLETED));
	assert_books(batch, OPENING);
	assert_int_equal(service.calls, 2000);
	assert_true(service.turns_max <= CONCURRENCY);
	AWAIT(DEADLINE_MS, atomic_load(&engine_metrics(engine)->batch_turns) == 0);
}

/* More batches than tenures: the rest waits for room, and none is forgotten; money that is to be given back has room. */
static void more_batches_than_there_is_room_for(void **state)
{
	const struct engine_metrics *metrics = engine_metrics(engine);
	int64_t batches[BATCHES_MAX + 10], cancelled;
	const size_t n = sizeof batches / sizeof *batches;
	struct batch_cancel c;
	_Atomic int done = 0;

	(void)state;
	make_account(OPENING);
	open_gate(0);
	for (size_t i = 0; i < n; i++)
		batches[i] = load(3, /* held= */ false);
	AWAIT(DEADLINE_MS, atomic_load(&metrics->batch_turns) == (uint64_t)BATCHES_MAX * CONCURRENCY);
	cancelled = load(3, /* held= */ true);
	c = cancel(cancelled);
	assert_true(batches_tear_down(engine_batches(engine), &c.hold, count_done, &done));
	AWAIT(DEADLINE_MS, atomic_load(&done) == 1);
	assert_true(is_in(cancelled, BATCH_CANCELLED));
	open_gate(SIZE_MAX);
	for (size_t i = 0; i < n; i++)
		AWAIT(DEADLINE_MS, is_in(batches[i], BATCH_COMPLETED));
	assert_int_equal(balance(), OPENING - (int64_t)n * cost_of(3));
	assert_int_equal(calls(), 3 * n);
	assert_true(service.turns_max <= (size_t)(BATCHES_MAX + 1) * CONCURRENCY);
}

/* A loader that was lost before its batch was whole: the janitor ends that. */
struct made {
	struct batch_spec spec;
	int64_t subject;
};

static void build_loading(const struct single *single, struct unit *unit)
{
	struct made *made = single->context;

	made->spec.subject = made->subject = single->fresh_id;
	batch_create(unit, &single->stamp, &made->spec, OVER_AT_ONCE_MS);
}

static void what_a_lost_loader_has_left_fails(void **state)
{
	struct single single;
	struct made made = {.spec = {
				    .workspace = WORKSPACE,
				    .requester = slice_str("ann"),
				    .machine = engine_batch(engine, slice_str("render")),
			    }};

	(void)state;
	make_account(OPENING);
	made.spec.account = look(load(0, /* held= */ true)).account;
	single_init(&single, &made, build_loading, won);
	assert_int_equal(run(&single.task, 1), HX_OK);
	AWAIT(DEADLINE_MS, is_in(made.subject, BATCH_FAILED));
}

static void run_sql(const char *text)
{
	struct db *db = store_open(store);
	struct hx_error err;

	if (db->driver->script(db, text, &err))
		fail_msg("%s", err.detail);
	db_close(db);
}

/* A version that nobody here knows: told once, looked for again and again, and never in a hurry. */
static void an_unknown_definition_is_waited_for(void **state)
{
	int64_t batch, driven;

	(void)state;
	make_account(OPENING);
	batch = load(3, /* held= */ true);
	engine_end();
	run_sql("UPDATE hx_batch SET definition_version = 99, due_at = 1; UPDATE hx_subject SET status = 'QUEUED' WHERE"
		" status = 'PENDING'");
	engine_begin();
	AWAIT(DEADLINE_MS, told("is not known here") == 1);
	assert_true(is_in(batch, BATCH_QUEUED));
	driven = (int64_t)atomic_load(&engine_metrics(engine)->batches_driven);
	assert_int_equal(driven, 0);
	assert_int_equal(told("is not known here"), 1);
}

/* A second node beside the first: between them they do everything once, and what one has left the other takes over. */
static void two_nodes_share_the_work(void **state)
{
	struct engine *first, *second;
	int64_t batches[20], last;
	const size_t n = sizeof batches / sizeof *batches;
	bool first_has;

	(void)state;
	shorten_lease(SOON_OVER_MS);
	first = engine;
	make_account(OPENING);
	node = "there";
	engine_begin();
	second = engine;
	for (size_t i = 0; i < n; i++) {
		engine = i % 2 ? first : second;
		batches[i] = load(6, /* held= */ false);
	}
	for (size_t i = 0; i < n; i++)
		AWAIT(DEADLINE_MS, is_in(batches[i], BATCH_COMPLETED));
	assert_int_equal(calls(), 6 * n);
	assert_int_equal(balance(), OPENING - (int64_t)n * cost_of(6));
	open_gate(6 * n + 4);
	last = load(30, /* held= */ false);
	AWAIT(DEADLINE_MS, calls() == 6 * n + 4 + CONCURRENCY);
	first_has = slice_is(look(last).owner, "here");
	engine = first_has ? first : second;
	engine_end();
	engine = first_has ? second : first;
	open_gate(SIZE_MAX);
	AWAIT(DEADLINE_MS, is_in(last, BATCH_COMPLETED));
	assert_int_equal(calls(), 6 * n + 30 + CONCURRENCY);
	assert_int_equal(balance(), OPENING - (int64_t)n * cost_of(6) - cost_of(30));
	assert_true(atomic_load(&engine_metrics(engine)->batches_taken_over) >= 1); /* more where a lease was short */
}

static void what_ended_long_ago_expires(void **state)
{
	int64_t batch;
	struct batch_row row;
	struct batch_cancel c;

	(void)state;
	engine_end();
	config.retain_batches_ms = 400;
	engine_begin();
	make_account(OPENING);
	batch = load(700, /* held= */ true);
	c = cancel(batch);
	assert_true(batches_tear_down(engine_batches(engine), &c.hold, /* done= */ NULL, NULL));
	AWAIT(DEADLINE_MS, atomic_load(&engine_metrics(engine)->batches_expired) == 1);
	row = look(batch);
	assert_true(row.expired);
	assert_string_equal(row.status, BATCH_CANCELLED);
	assert_int_equal(row.total, 700);
	assert_int_equal(balance(), OPENING);
}

static enum store_kind sqlite = STORE_SQLITE_FILE, postgres = STORE_POSTGRES;

#define ON(name, store)                                                                                                \
	{                                                                                                              \
#name " on " #store, name, set_up, tear_down, &store                                                   \
	}
#define TEST(name) ON(name, sqlite), ON(name, postgres)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(all_items_are_done_once_and_some_at_a_time),
		TEST(failed_items_are_tried_again_and_returned),
		TEST(a_cancel_in_the_middle_gives_all_back),
		TEST(what_a_stop_has_left_is_taken_over),
		TEST(what_was_flagged_is_taken_over_into_teardown),
		TEST(money_that_comes_makes_it_go_on),
		TEST(a_cleanup_that_fails_is_tried_again),
		TEST(a_caller_tears_down_what_it_has_seized),
		TEST(what_a_lost_canceller_has_seized_is_torn_down),
		TEST(an_overtaken_tenure_ends),
		TEST(a_cancel_meets_the_first_claim),
		TEST(tearing_down_is_refused_by_a_stopped_engine),
		TEST(a_stop_tells_whoever_waits),
		ON(many_items_take_no_more_memory, sqlite),
		TEST(more_batches_than_there_is_room_for),
		TEST(what_a_lost_loader_has_left_fails),
		TEST(an_unknown_definition_is_waited_for),
		TEST(what_ended_long_ago_expires),
		ON(two_nodes_share_the_work, postgres),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
