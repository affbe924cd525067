/*
 * Stands: one offer wakes one of those who wait, whoever was woken and is gone passes it on, one looks by time for all.
 * The work is a number here, and a porter takes one of it when it looks.
 */
#include "task/inbox.h"
#include "unit/task/lane_party.h"

#define STAND 77
#define OTHER 78
#define LOOK_MS 2000
#define WAIT_MS 60000

struct porter {
	struct seat seat; /* first, as in struct caller */
	struct task task;
	struct lane_place places[2];
	struct mono_time until, deadline;
	atomic_bool gone; /* its caller: it takes nothing */
	atomic_bool done;
	size_t took[2];
};

static struct porter porters[CALLERS];
static _Atomic int work[2], looks;

static bool take_one(int at)
{
	int n = atomic_load(&work[at]);

	while (n > 0)
		if (atomic_compare_exchange_weak(&work[at], &n, n - 1))
			return true;
	return false;
}

static void porter_take(struct task *task, const struct answer *answer)
{
	struct porter *p = (struct porter *)((char *)task - offsetof(struct porter, task));

	if (answer->kind == ANSWER_START)
		p->deadline = mono_add_ms(answer->mono, WAIT_MS);
	p->until = mono_add_ms(answer->mono, LOOK_MS);
	if (p->gone) {
		task->at = 1;
		return;
	}
	atomic_fetch_add(&looks, 1);
	for (size_t i = 0; i < p->seat.places_n && !task->at; i++)
		if (take_one(p->places[i].stand == STAND ? 0 : 1)) {
			p->took[i] = 1;
			task->at = 1;
		}
	if (answer->mono.ns >= p->deadline.ns)
		task->at = 1;
}

static void porter_ask(const struct task *task, struct ask *ask)
{
	const struct porter *p = (const struct porter *)((const char *)task - offsetof(struct porter, task));

	ask->kind = task->at ? ASK_DONE : ASK_SLEEP;
	ask->until = p->until;
	ask->latest = p->deadline;
	ask->code = HX_OK;
}

static const struct task_kind porter_kind = {.name = "porter", .take = porter_take, .ask = porter_ask};

static size_t porter_took(const struct seat *seat, size_t place)
{
	return ((const struct porter *)seat)->took[place];
}

static void porter_done(struct seat *seat, enum hx_code code)
{
	struct porter *p = (struct porter *)seat;

	(void)code;
	pthread_mutex_lock(&meeting);
	p->done = true;
	pthread_cond_broadcast(&news);
	pthread_mutex_unlock(&meeting);
}

static void porter_sits(struct porter *p, struct lane *lane, bool at_both)
{
	*p = (struct porter){.seat = {.task = &p->task, .done = porter_done, .took = porter_took}};
	task_init(&p->task, &porter_kind, /* topic= */ 5);
	p->places[0].stand = at_both ? OTHER : STAND;
	p->places[1].stand = STAND;
	p->seat.places = p->places;
	p->seat.places_n = at_both ? 2 : 1;
	assert_int_equal(lane_submit(lane, &p->seat), HX_OK);
}

static void porter_waits(struct porter *p, bool at_both)
{
	porter_sits(p, party.lane, at_both);
}

static size_t done_n(size_t n)
{
	size_t done = 0;

	for (size_t i = 0; i < n; i++)
		done += porters[i].done;
	return done;
}

static void build_offer(struct unit *unit, const struct probe *p)
{
	subject_read(unit, 1);
	assert_true(unit_offer(unit, p->subject, (uint32_t)p->number));
}

/* n pieces of work are there, and it is told at their stand by a commit. */
static void offer(int64_t stand, int64_t n)
{
	atomic_fetch_add(&work[stand == STAND ? 0 : 1], (int)n);
	(void)ask_lane(party.lane, build_offer, stand, n);
}

static void start(enum store_kind kind, size_t n, bool at_both)
{
	work[0] = work[1] = looks = 0;
	party_start(kind, CALLERS);
	for (size_t i = 0; i < n; i++)
		porter_waits(&porters[i], at_both);
	settle();
	assert_int_equal(looks, n);
	looks = 0;
}

static void one_offer_wakes_one(void **state)
{
	enum { N = 1000 };
	uint64_t before;

	start(kind_of(state), N, /* at_both= */ false);
	before = party_stats().woken;
	for (size_t i = 1; i <= 10; i++) {
		offer(STAND, 1);
		AWAIT(done_n(N) == i);
	}
	settle();
	assert_int_equal(looks, 10);
	assert_int_equal(party_stats().woken - before, 10);
	offer(OTHER, 1); /* where nobody waits */
	settle();
	assert_int_equal(looks, 10);
}

static void the_first_that_came_is_woken_first(void **state)
{
	start(kind_of(state), 5, /* at_both= */ false);
	for (size_t i = 1; i < 5; i++) {
		offer(STAND, 1);
		AWAIT(porters[i]
			      .done); /* the very first looks by time for all, and is spared as long as there are others */
	}
	offer(STAND, 1);
	AWAIT(porters[0].done);
}

static void as_many_are_woken_as_there_is_work(void **state)
{
	start(kind_of(state), 20, /* at_both= */ false);
	offer(STAND, 7);
	AWAIT(done_n(20) == 7);
	settle();
	assert_int_equal(looks, 7);
	offer(STAND, 100); /* more than there are */
	AWAIT(done_n(20) == 20);
	assert_int_equal(work[0], 87);
}

static void who_is_gone_passes_it_on(void **state)
{
	start(kind_of(state), 200, /* at_both= */ false);
	for (size_t i = 0; i < 199; i++)
		porters[i].gone = true;
	offer(STAND, 1);
	AWAIT(porters[199].done); /* all the others were woken in vain */
	assert_int_equal(work[0], 0);
}

/* It was woken for one, and has found the other: who waits for the first must hear of it. */
static void who_takes_other_work_passes_it_on(void **state)
{
	start(kind_of(state), 1, /* at_both= */ false);
	porter_waits(&porters[1], /* at_both= */ true);
	settle();
	atomic_store(&work[1], 1); /* of which nobody was told */
	offer(STAND, 1);
	AWAIT(porters[0].done && porters[1].done);
	assert_int_equal(work[0] + work[1], 0);
}

/* What comes while one is on its way to sleep is kept for it, and goes on if it leaves instead. */
static void what_comes_meanwhile_is_not_lost(void **state)
{
	start(kind_of(state), 0, /* at_both= */ false);
	for (size_t i = 0; i < 500; i++) {
		hold_lane(party.lane, &holder);
		porter_waits(&porters[0], /* at_both= */ i & 1);
		porter_waits(&porters[1], /* at_both= */ false);
		atomic_fetch_add(&work[0], 2);
		lane_offer(party.lane, (struct offer){STAND, 1});
		let_lane_go();
		lane_offer(party.lane, (struct offer){STAND, 1});
		AWAIT(porters[0].done && porters[1].done);
	}
	assert_int_equal(work[0], 0);
}

static void one_looks_by_time_for_all(void **state)
{
	start(kind_of(state), 1000, /* at_both= */ false);
	for (int i = 1; i <= 5; i++) {
		party_pass_ms(LOOK_MS);
		AWAIT(looks == i);
		settle();
		assert_int_equal(looks, i);
	}
	/* Nobody tells of this one; it is found, and the next one has the post, and so on until there is nothing. */
	atomic_store(&work[0], 3);
	party_pass_ms(LOOK_MS);
	AWAIT(done_n(1000) == 3);
	settle();
	assert_int_equal(looks, 9);
	party_pass_ms(LOOK_MS);
	AWAIT(looks == 10);
	/* The others wait as long as they want to, and no longer. */
	party_pass_ms(WAIT_MS);
	AWAIT(done_n(1000) == 1000);
}

static void whoever_looks_by_time_and_is_gone_has_a_successor(void **state)
{
	start(kind_of(state), 10, /* at_both= */ true);
	for (size_t i = 0; i < 9; i++)
		porters[i].gone = true;
	party_pass_ms(LOOK_MS); /* the first one was it; the last that came has the post then */
	AWAIT(looks == 1);
	atomic_store(&work[1], 1);
	party_pass_ms(LOOK_MS);
	AWAIT(porters[9].done);
}

static void everybody_can_still_be_woken(void **state)
{
	start(kind_of(state), 50, /* at_both= */ true);
	lane_wake_everybody(party.lane);
	AWAIT(looks == 50);
	lane_wake(party.lane, (const int64_t[]){5}, 1);
	AWAIT(looks == 100);
	for (size_t i = 0; i < 2 * WAIT_MS / LOOK_MS; i++)
		party_pass_ms(LOOK_MS);
	AWAIT(done_n(50) == 50);
}

/* The lane that hears of it has no room for it and does not move: who waits in another one is told all the same. */
static void an_offer_for_a_full_lane_goes_on(void **state)
{
	struct lane_options options;
	struct lane *other, *lanes[2];
	struct hx_error err;

	start(kind_of(state), 0, /* at_both= */ false);
	options = party.options;
	options.number = 1;
	assert_int_equal(lane_new(&options, &other, &err), HX_OK);
	lanes[0] = party.lane;
	lanes[1] = other;
	lane_set_peers(party.lane, lanes, 2);
	lane_set_peers(other, lanes, 2);
	porter_sits(&porters[0], other, /* at_both= */ false);
	(void)ask_lane(other, build_read, 1, 0);
	hold_lane(party.lane, &holder);
	for (size_t i = 0; i < OFFERS_MAX; i++)
		lane_offer(party.lane, (struct offer){OTHER, 1});
	atomic_store(&work[0], 1);
	lane_offer(party.lane, (struct offer){STAND, 1});
	AWAIT(porters[0].done);
	assert_int_equal(work[0], 0);
	let_lane_go();
	lane_stop(party.lane, 0);
	lane_free(other);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ONE(one_offer_wakes_one, in_memory),
		ONE(the_first_that_came_is_woken_first, in_file),
		ONE(as_many_are_woken_as_there_is_work, in_memory),
		ONE(who_is_gone_passes_it_on, in_memory),
		ONE(who_takes_other_work_passes_it_on, in_memory),
		ONE(what_comes_meanwhile_is_not_lost, in_memory),
		ONE(one_looks_by_time_for_all, in_memory),
		ONE(whoever_looks_by_time_and_is_gone_has_a_successor, in_memory),
		ONE(everybody_can_still_be_woken, in_memory),
		ONE(an_offer_for_a_full_lane_goes_on, in_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
