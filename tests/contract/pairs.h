/*
 * Every pair of unit kinds, interleaved on two real connections to PostgreSQL, must come out as if one had run
 * after the other. For each pair, each fixture and each belief (right, or one behind):
 *
 *   stepwise   all orders of their statements that the locks allow, found depth first: a schedule is run from a
 *              fresh fixture, then the last choice that has another is taken the other way. Who comes to a lock that the other has
 *              waits there until the other ends, having done nothing, whenever it comes: side a comes right after b has its lock,
 *              side b right before the end of a. While one waits, or has ended, the lines of the other are one step. At every
 *              moment in between, too, and line by line, only with HAPAX_SOAK
 *   whole      one side has executed, the other comes and waits or not, then the first ends; in set form, where there is one: then
 *              each has a twin beside it, on a subject of its own
 *
 * with both committing, and with either rolling back. The outcome is the verdicts with their rows and what the
 * tables then say (chains checked); it must be that of one of the two serial orders, or of the other alone.
 */
#ifndef HX_TESTS_CONTRACT_PAIRS_H
#define HX_TESTS_CONTRACT_PAIRS_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "flow/batch.h"
#include "flow/run.h"
#include "support/item.h"
#include "support/ledger.h"
#include "support/side.h"
#include "support/unit_kinds.h"

#define DEPTH_MAX 64
#define POOL 256
#define RUN_POOL 64
#define KINDS_MAX 160
#define FIRST_ID 1000000 /* no version, fence or op is as large */
#define LEASE_MS 3600000

static struct {
	struct store *store;
	struct session *session; /* fixtures and the ledger */
	struct session
		*reader; /* of runs and batches, many at a time: what it has read last is of the pool of `fixture` */
	PGconn *watcher;
	struct side *side[2];
	int64_t next_id;
	size_t pooled[FIXTURE_COUNT];
	int64_t pool[FIXTURE_COUNT][POOL];
	/* In the fixture that is checked; by kind, stale. */
	bool asked[KINDS_MAX][2], writes[KINDS_MAX][2];
	char *alone[KINDS_MAX][2][2][2]; /* what it comes to, also by side, on two subjects; NULL: not known yet */
	/* The same of two that commit, by kind and stale of each, and by who was first. */
	char *serial[KINDS_MAX][2][KINDS_MAX][2][2];
	enum fixture fixture; /* that all this is about */
	long interleavings, blocked, again, not_serial;
} world;

static inline int set_up(void **state)
{
	(void)state;
	world.store = store_new(STORE_POSTGRES);
	db_close(store_open_migrated(world.store));
	world.session = session_new(world.store, store_open_hasty(world.store, "session"));
	world.reader = session_new(world.store, store_open_hasty(world.store, "reader"));
	world.watcher = store_raw(world.store);
	/* What a run is migrated to. */
	PQclear(PQexec(
		world.watcher,
		"INSERT INTO hx_definition (name, version, text, at) VALUES ('order', 2, '{}', 0), ('await', 2, '{}', 0)"));
	world.side[0] = side_new(world.store, "side_a");
	world.side[1] = side_new(world.store, "side_b");
	world.next_id = FIRST_ID;
	return 0;
}

static inline void close_world(void)
{
	side_free(world.side[0]);
	side_free(world.side[1]);
	PQfinish(world.watcher);
	session_free(world.session);
	session_free(world.reader);
	store_free(world.store);
}

static inline int tear_down(void **state)
{
	(void)state;
	close_world();
	printf("# pairs: %zu kinds, %ld interleavings, ", unit_kinds_n, world.interleavings);
	if (world.not_serial)
		printf("%ld not serial\n", world.not_serial);
	else
		printf("all serial (%ld waited for a lock, %ld asked again)\n", world.blocked, world.again);
	return 0;
}

/* ---- fixtures, made many at a time ---- */

/* Units of runs and batches are made of what was read. */
static inline bool is_read(enum fixture fixture)
{
	return fixture_is_run(fixture) || fixture_is_batch(fixture);
}

/* What is there from `first` on, into the results of the reader. */
static inline void read_all(enum fixture fixture, int64_t first, int64_t n)
{
	session_reset(world.reader);
	for (int64_t i = 0; i < n; i++)
		if (fixture_is_run(fixture))
			run_read(session_unit(world.reader), /* workspace= */ slice_of(NULL, 0), first + i);
		else
			batch_read(session_unit(world.reader), /* workspace= */ slice_str(""), first + i);
	session_must(world.reader, session_run(world.reader));
}

static inline void fill_pool(enum fixture fixture, int64_t n)
{
	struct session *s = world.session;
	bool reads = is_read(fixture);
	int64_t first = world.next_id;

	world.next_id += n;
	for (unsigned step = 0; step < fixture_steps_n(fixture); step++) {
		if (reads)
			read_all(fixture, first, n);
		session_reset(s);
		for (int64_t i = 0; i < n; i++)
			fixture_step(fixture, step, first + i, s->db, reads ? &world.reader->result[i] : NULL,
				     session_unit(s));
		if (session_run(s) != HX_OK)
			fail_msg("fixture: %s", s->err.detail);
		for (int64_t i = 0; i < n; i++)
			assert_int_equal(s->result[i].verdict, UNIT_WON);
	}
	if (reads)
		read_all(fixture, first, n);
	for (int64_t i = 0; i < n; i++)
		world.pool[fixture][i] = first + i;
	world.pooled[fixture] = (size_t)n;
}

/* A subject that nobody has touched yet, and what was read of it. */
struct fresh {
	int64_t id;
	const struct unit_result *read;
};

/* So many, of one filling: with the next one, what was read before is gone, and units borrow from it. */
static inline void reserve(enum fixture fixture, size_t n)
{
	if (world.pooled[fixture] < n)
		fill_pool(fixture, is_read(fixture) ? RUN_POOL : POOL);
}

static inline struct fresh fresh(enum fixture fixture)
{
	size_t i;

	reserve(fixture, 1);
	i = --world.pooled[fixture];
	return (struct fresh){world.pool[fixture][i], is_read(fixture) ? &world.reader->result[i] : NULL};
}

/* A unit that meets what it does not name, the sweep, is to meet this one record and nothing else. */
static inline struct fresh fresh_and_only(enum fixture fixture)
{
	struct hx_error err = {0};

	if (world.session->db->driver->script(world.session->db,
					      "DELETE FROM hx_gate_record WHERE sweep_at <= hx_now_ms()", &err))
		fail_msg("%s", err.detail);
	world.pooled[FIXTURE_GATE_EXPIRED] = 0;
	if (fixture == FIXTURE_GATE_EXPIRED)
		fill_pool(fixture, 1);
	return fresh(fixture);
}

/* ---- a pair ---- */

struct player {
	const struct unit_kind *kind;
	bool stale;
	bool commits;
};

struct pair {
	enum fixture fixture;
	struct player player[2];
};

/* The units of a pair on fresh subjects. Without a twin the group is in row form. */
struct meeting {
	bool has_twin[2];
	int64_t ids[2]; /* what they meet on */
	struct unit unit[2], twin[2];
};

static inline void build(const struct pair *pair, int side, struct fresh subject, int64_t other, struct unit *unit)
{
	const struct player *p = &pair->player[side];
	struct kind_args args = {
		.subject = subject.id,
		.other = other,
		.stamp = {.op = 101 + side, .at = {5000 + side}, .node = side ? "b" : "a"},
		.version = fixture_version(pair->fixture) - p->stale,
		.fence = fixture_fence(pair->fixture) - p->stale,
		.effort = fixture_effort(pair->fixture) - p->stale,
		.token = fixture_token(pair->fixture) - p->stale,
		.other_version = fixture_version(FIXTURE_OPEN) - p->stale,
		.lease_ms = LEASE_MS,
		.rival_op = 102 - side,
		.db = world.session->db,
		.read = subject.read,
		.stale = p->stale,
	};

	unit_init(unit, args.stamp.op);
	p->kind->build(unit, &args);
}

static inline bool touches_two(const struct pair *pair)
{
	return pair->player[0].kind->touches_two || pair->player[1].kind->touches_two;
}

/* Would two of these share a statement? Otherwise they run one after the other, as one alone does. */
static inline bool has_set_form(const struct unit *unit)
{
	bool any = false;

	for (unsigned i = 0; i < unit->lines_n; i++)
		any |= stmt_has_set_form(unit->lines[i].stmt);
	return unit->together || (any && unit_is_plain(unit));
}

static inline void meeting_init(struct meeting *m, const struct pair *pair, bool with_twins)
{
	bool alone = pair->player[0].kind->alone || pair->player[1].kind->alone;
	struct fresh subject;

	if (is_read(pair->fixture))
		reserve(pair->fixture, 3);
	subject = alone ? fresh_and_only(pair->fixture) : fresh(pair->fixture);
	m->ids[0] = subject.id;
	m->ids[1] = touches_two(pair) ? fresh(FIXTURE_OPEN).id : 0;
	for (int i = 0; i < 2; i++) {
		build(pair, i, subject, m->ids[1], &m->unit[i]);
		m->has_twin[i] = with_twins && !alone && has_set_form(&m->unit[i]);
		if (m->has_twin[i])
			build(pair, i, fresh(pair->fixture),
			      pair->player[i].kind->touches_two ? fresh(FIXTURE_OPEN).id : 0, &m->twin[i]);
	}
}

static inline void start(const struct meeting *m, const struct pair *pair, int side, bool whole, bool twin)
{
	struct side_plan plan = {.unit = &m->unit[side],
				 .twin = twin && m->has_twin[side] ? &m->twin[side] : NULL,
				 .whole = whole,
				 .commits = pair->player[side].commits};

	side_start(world.side[side], &plan);
}

/* Its next step; where it cannot meet a lock of the other's, without more ado. rest: nobody comes between the lines that are left. */
static inline enum side_state step(int side, bool rest)
{
	if (rest || side_is_idle(world.side[!side]) || side_ends_next(world.side[side]))
		return side_step_free(world.side[side], rest);
	return side_step(world.side[side], world.watcher);
}

/* What was no answer, but a word that it has to be asked again, is asked again. */
static inline void run_again(const struct meeting *m, const struct pair *pair)
{
	for (int i = 0; i < 2; i++) {
		bool (*asks_again)(const char *outcome) = pair->player[i].kind->asks_again;

		if (!pair->player[i].commits || !asks_again || !asks_again(side_outcome(world.side[i])))
			continue;
		world.again++;
		start(m, pair, i, /* whole= */ true, /* twin= */ false);
		while (side_state(world.side[i]) != SIDE_ENDED)
			(void)side_step_free(world.side[i], /* rest= */ false);
	}
}

/* The tables in which it stands. */
static inline enum ledger ledger_of(enum fixture fixture)
{
	static const enum ledger ledgers[] = {
		[OF_SUBJECT] = LEDGER_SUBJECTS, [OF_GATE] = LEDGER_GATE,          [OF_JOB] = LEDGER_JOBS,
		[OF_ACCOUNT] = LEDGER_ACCOUNTS, [OF_BULK] = LEDGER_BULKS,         [OF_RUN] = LEDGER_RUNS,
		[OF_BATCH] = LEDGER_BATCHES,    [OF_FUNCTION] = LEDGER_FUNCTIONS, [OF_SCHEDULE] = LEDGER_SCHEDULES,
		[OF_HOOK] = LEDGER_HOOKS,       [OF_FAMILY] = LEDGER_RUNS,
	};

	return ledgers[fixture_of(fixture)];
}

/* Both sides have ended: what they were told, and what the tables say. */
static inline void write_outcome(const struct meeting *m, const struct pair *pair, struct strbuf *out)
{
	run_again(m, pair);
	for (int i = 0; i < 2; i++)
		strbuf_addf(out, "%s: %s", i ? "b" : "a",
			    pair->player[i].commits ? side_outcome(world.side[i]) : "rolled back\n");
	if (!ledger_write(world.session->db, ledger_of(pair->fixture), m->ids, touches_two(pair) ? 2 : 1,
			  /* with_hashes= */ false, out))
		fail_msg("%s", out->p);
}

/* One after the other, whole; a side that rolls back need not run at all. */
static inline void run_serial(const struct pair *pair, int first, struct strbuf *out)
{
	struct meeting m;

	meeting_init(&m, pair, /* with_twins= */ false);
	for (int i = 0; i < 2; i++) {
		int side = i ? !first : first;

		if (!pair->player[side].commits)
			continue;
		start(&m, pair, side, /* whole= */ true, /* twin= */ false);
		while (side_state(world.side[side]) != SIDE_ENDED)
			(void)side_step_free(world.side[side], /* rest= */ false);
	}
	write_outcome(&m, pair, out);
}

/* The same where one rolls back: what the other comes to does not depend on who that is, and is found out once. */
static inline void run_alone(const struct pair *pair, int side, struct strbuf *out)
{
	const struct player *player = &pair->player[side];
	size_t kind = (size_t)(player->kind - unit_kinds);
	char **known = &world.alone[kind][player->stale][side][touches_two(pair)];

	assert_true(kind < unit_kinds_n);
	if (*known) {
		strbuf_add_str(out, *known);
		return;
	}
	run_serial(pair, side, out);
	*known = strdup(out->p);
}

/* One after the other: what that comes to is asked for by both tests of a fixture. Kinds that are not of the list ask each time. */
static inline void run_both(const struct pair *pair, int first, struct strbuf *out)
{
	const struct player *a = &pair->player[0], *b = &pair->player[1];
	size_t i = (size_t)(a->kind - unit_kinds), j = (size_t)(b->kind - unit_kinds);
	bool listed = i < unit_kinds_n && j < unit_kinds_n;
	char **known = listed ? &world.serial[i][a->stale][j][b->stale][first] : NULL;

	if (listed && *known) {
		strbuf_add_str(out, *known);
		return;
	}
	run_serial(pair, first, out);
	if (listed)
		*known = strdup(out->p);
}

static inline void forget_known(char **known, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		free(known[i]);
		known[i] = NULL;
	}
}

/* What is known is about one fixture. */
static inline void turn_to(enum fixture fixture)
{
	forget_known(&world.alone[0][0][0][0], sizeof world.alone / sizeof(char *));
	if (fixture != world.fixture) {
		forget_known(&world.serial[0][0][0][0][0], sizeof world.serial / sizeof(char *));
		world.pooled[fixture] = 0; /* the reader is to have read it */
	}
	world.fixture = fixture;
}

/* ---- interleavings ---- */

struct schedule {
	unsigned n;
	unsigned char choice[DEPTH_MAX];
	bool both[DEPTH_MAX]; /* the other side could have gone as well */
	bool every_moment;    /* for a side to come to its lock */
	bool passed; /* one has come to what the other should have locked, and did not wait: it is not there yet */
};

/* Both lock it before they do anything else: whoever comes second waits. */
static inline bool share_a_lock(const struct meeting *m)
{
	for (unsigned i = 0; i < m->unit[0].subjects_n; i++)
		for (unsigned j = 0; j < m->unit[1].subjects_n; j++)
			if (m->unit[0].subjects[i] >= 0 && m->unit[0].subjects[i] == m->unit[1].subjects[j])
				return true;
	return false;
}

/* It has not begun, and the other has what it will wait for: is this a moment at which it comes? */
static inline bool comes_now(const struct schedule *schedule, unsigned side)
{
	if (schedule->every_moment || schedule->n == 0 || !side_is_at_lock(world.side[side]))
		return true;
	return side == 0 ? schedule->n == 1 : side_ends_next(world.side[0]);
}

/* Who can go, where both lock the same. A moment to come is not let pass: then they would not meet. */
static inline void choose_moments(const struct schedule *schedule, bool ready[2])
{
	for (unsigned i = 0; i < 2; i++)
		ready[i] = comes_now(schedule, i);
	for (unsigned i = 0; i < 2 && !schedule->every_moment && schedule->n > 0; i++)
		if (ready[i] && side_is_at_lock(world.side[i]))
			ready[!i] = false;
}

/* Has it what the other waits for, or will, so that nobody is between its lines? */
static inline bool is_undisturbed(const struct schedule *schedule, unsigned side)
{
	struct side *other = world.side[!side];

	return !schedule->every_moment && !side_is_idle(world.side[side]) &&
	       (side_is_idle(other) || side_state(other) == SIDE_BLOCKED);
}

/* Runs one schedule: as far as it is given, then side a first. Notes what was chosen, and where else it could go. */
static inline void run_interleaved(const struct pair *pair, struct schedule *schedule, struct strbuf *out)
{
	struct meeting m;
	unsigned given = schedule->n;
	bool shared, waits;

	meeting_init(&m, pair, /* with_twins= */ false);
	shared = share_a_lock(&m);
	for (int i = 0; i < 2; i++)
		start(&m, pair, i, /* whole= */ false, /* twin= */ false);
	for (schedule->n = 0;; schedule->n++) {
		enum side_state state[2] = {side_state(world.side[0]), side_state(world.side[1])};
		bool ready[2] = {state[0] == SIDE_READY, state[1] == SIDE_READY}, both = ready[0] && ready[1];
		unsigned wish = schedule->n < given ? schedule->choice[schedule->n] : 0;
		unsigned choice;

		if (!ready[0] && !ready[1])
			break;
		if (both && shared)
			choose_moments(schedule, ready);
		choice = ready[wish] ? wish : !wish;
		assert_true(schedule->n < DEPTH_MAX);
		schedule->choice[schedule->n] = (unsigned char)choice;
		schedule->both[schedule->n] = ready[0] && ready[1];
		waits = both && shared && schedule->n > 0 && side_is_at_lock(world.side[choice]);
		state[choice] = step((int)choice, shared && is_undisturbed(schedule, choice));
		schedule->passed |= waits && state[choice] != SIDE_BLOCKED;
		world.blocked += state[choice] == SIDE_BLOCKED;
		/* Whoever waited for this side goes on when it has ended. */
		if (state[choice] == SIDE_ENDED && side_state(world.side[!choice]) == SIDE_BLOCKED)
			(void)side_await(world.side[!choice], world.watcher);
	}
	for (int i = 0; i < 2; i++)
		if (side_state(world.side[i]) != SIDE_ENDED)
			fail_msg("both sides wait: a deadlock");
	write_outcome(&m, pair, out);
}

/* The next schedule in depth-first order: the last choice that has another goes the other way. */
static inline bool next_schedule(struct schedule *schedule)
{
	while (schedule->n > 0) {
		unsigned last = --schedule->n;

		if (schedule->both[last] && schedule->choice[last] == 0) {
			schedule->choice[last] = 1;
			schedule->n++;
			return true;
		}
	}
	return false;
}

static inline void run_whole(const struct pair *pair, int first, struct strbuf *out)
{
	struct side *two = world.side[!first];
	struct meeting m;

	meeting_init(&m, pair, /* with_twins= */ true);
	start(&m, pair, first, /* whole= */ true, /* twin= */ true);
	start(&m, pair, !first, /* whole= */ true, /* twin= */ true);
	assert_int_equal(step(first, /* rest= */ false), SIDE_READY);
	world.blocked += step(!first, /* rest= */ false) == SIDE_BLOCKED;
	assert_int_equal(step(first, /* rest= */ false), SIDE_ENDED);
	if (side_state(two) == SIDE_BLOCKED)
		(void)side_await(two, world.watcher);
	while (side_state(two) != SIDE_ENDED)
		(void)step(!first, /* rest= */ false);
	write_outcome(&m, pair, out);
}

static inline void describe(const struct pair *pair, const struct schedule *schedule, struct strbuf *out)
{
	strbuf_addf(out, "fixture %s", fixture_name(pair->fixture));
	for (int i = 0; i < 2; i++)
		strbuf_addf(out, ", %c: %s%s%s", 'a' + i, pair->player[i].kind->name,
			    pair->player[i].stale ? " (stale)" : "", pair->player[i].commits ? "" : " (rolls back)");
	strbuf_add_str(out, ", order ");
	for (unsigned i = 0; schedule && i < schedule->n; i++)
		strbuf_add_char(out, "ab"[schedule->choice[i]]);
}

static inline void report(const struct pair *pair, const struct schedule *schedule, const struct strbuf serial[2],
			  const struct strbuf *out)
{
	struct strbuf words;

	strbuf_init(&words, 65536);
	describe(pair, schedule, &words);
	printf("not serial: %s\n--- outcome\n%s--- a, then b\n%s--- b, then a\n%s", words.p, out->p, serial[0].p,
	       serial[1].p);
	strbuf_release(&words);
}

/* Runs all interleavings of a pair. Returns how many were not serial, having told about the first. */
static inline long check_pair(const struct pair *pair, bool whole)
{
	struct strbuf serial[2], out;
	struct schedule schedule = {.every_moment = getenv("HAPAX_SOAK")};
	bool both = pair->player[0].commits && pair->player[1].commits;
	int first = 0;
	long bad = 0;
	bool more;

	strbuf_init(&out, 65536);
	for (int i = 0; i < 2; i++) {
		strbuf_init(&serial[i], 65536);
		if (both)
			run_both(pair, i, &serial[i]);
		else if (i == 0) /* of one alone there is one order */
			run_alone(pair, pair->player[1].commits, &serial[i]);
	}
	do {
		strbuf_reset(&out);
		if (whole)
			run_whole(pair, first, &out);
		else
			run_interleaved(pair, &schedule, &out);
		world.interleavings++;
		if (strcmp(out.p, serial[0].p) != 0 && strcmp(out.p, serial[1].p) != 0 && bad++ == 0)
			report(pair, &schedule, serial, &out);
		more = whole ? first++ == 0 : next_schedule(&schedule);
		if (schedule.passed && !schedule.every_moment) { /* all over again */
			schedule = (struct schedule){.every_moment = true};
			more = true;
		}
	} while (more);
	strbuf_release(&serial[0]);
	strbuf_release(&serial[1]);
	strbuf_release(&out);
	return bad;
}

/* Does this unit, alone, change anything here? Two units that do not cannot disturb each other. */
static inline bool writes_alone(enum fixture fixture, const struct unit_kind *kind, bool stale)
{
	struct pair alone = {.fixture = fixture, .player = {{kind, stale, true}, {kind, stale, false}}};
	struct strbuf before, after;
	bool changed;

	strbuf_init(&before, 65536);
	strbuf_init(&after, 65536);
	run_serial(&alone, 0, &after);
	alone.player[0].commits = false;
	run_serial(&alone, 0, &before);
	/* After the outcomes stand the tables. */
	changed = strcmp(strstr(after.p, "subject 0"), strstr(before.p, "subject 0")) != 0;
	strbuf_release(&before);
	strbuf_release(&after);
	return changed;
}

/*
 * A rollback matters only to those who would have won: with a stale belief both commit. What a gate record knows of its
 * holder is in one row, and whoever changes a run or a batch holds its subject from the first statement on, so that rollbacks
 * and beliefs of both are tried in whole batches only; of batches, where there are many pairs, in the state at work alone.
 */
static inline void check_ends(struct pair *pair, bool whole)
{
	static const bool commits[][2] = {{true, true}, {false, true}, {true, false}};
	bool stale = pair->player[0].stale || pair->player[1].stale;
	bool batch = fixture_is_batch(pair->fixture);
	bool brief = (fixture_of(pair->fixture) == OF_GATE || fixture_is_run(pair->fixture) || batch) && !whole;
	bool once = stale || brief || (batch && pair->fixture != FIXTURE_BATCH_OWNED);

	if (brief && stale)
		return;
	for (int c = 0; c < (once ? 1 : 3); c++) {
		pair->player[0].commits = commits[c][0];
		pair->player[1].commits = commits[c][1];
		world.not_serial += check_pair(pair, whole);
	}
}

/* What is not of one noun has nothing to do with each other; a stale belief needs a belief. */
static inline bool meets(const struct player *player, enum fixture fixture)
{
	const struct unit_kind *kind = player->kind;

	return kind->of == fixture_of(fixture) && !kind->variant &&
	       (!player->stale || kind->of == OF_SUBJECT || kind->believes);
}

/* Is there such a unit here? What is to be written to a run or a batch depends on what was read. */
static inline bool is_asked(const struct player *player, enum fixture fixture)
{
	struct pair pair = {.fixture = fixture, .player = {*player}};
	struct unit unit;

	if (!meets(player, fixture))
		return false;
	build(&pair, 0, fresh(fixture), /* other= */ FIRST_ID - 1, &unit); /* it is not run */
	return unit.lines_n > 0;
}

/*
 * The version and the fence of a run or a batch only rise: a belief that lags, and has no effect alone, has none beside
 * anybody, and it is left out.
 */
static inline bool can_disturb(enum fixture fixture, size_t a, bool a_stale, size_t b, bool b_stale)
{
	bool writes[2] = {world.writes[a][a_stale], world.writes[b][b_stale]};

	if (!world.asked[a][a_stale] || !world.asked[b][b_stale])
		return false;
	if ((fixture_is_run(fixture) || fixture_is_batch(fixture)) &&
	    ((a_stale && !writes[0]) || (b_stale && !writes[1])))
		return false;
	return writes[0] || writes[1];
}

/*
 * How far a kind's partners go. With HAPAX_BRIEF it meets itself and the next one alone: enough to run the code of all of them under a
 * sanitizer, which has nothing to say about serial orders.
 */
static inline size_t partners_end(size_t kind)
{
	return getenv("HAPAX_BRIEF") && kind + 2 < unit_kinds_n ? kind + 2 : unit_kinds_n;
}

static inline void check_fixture(enum fixture fixture, bool whole)
{
	static const bool stale[][2] = {{false, false}, {false, true}, {true, false}};
	long before = world.not_serial;

	assert_true(unit_kinds_n <= KINDS_MAX);
	turn_to(fixture);
	for (size_t k = 0; k < unit_kinds_n; k++)
		for (int s = 0; s < 2; s++) {
			world.asked[k][s] = is_asked(&(struct player){&unit_kinds[k], s, true}, fixture);
			world.writes[k][s] = world.asked[k][s] && writes_alone(fixture, &unit_kinds[k], s);
		}
	for (size_t a = 0; a < unit_kinds_n; a++) {
		for (size_t b = a; b < partners_end(a); b++) {
			for (int s = 0; s < 3; s++) {
				struct pair pair = {.fixture = fixture,
						    .player = {{&unit_kinds[a], stale[s][0], true},
							       {&unit_kinds[b], stale[s][1], true}}};

				if (can_disturb(fixture, a, stale[s][0], b, stale[s][1]))
					check_ends(&pair, whole);
			}
		}
	}
	assert_int_equal(world.not_serial, before);
}

#define WHOLE_TEST(name, fixture)                                                                                      \
	static void whole_##name(void **state)                                                                         \
	{                                                                                                              \
		(void)state;                                                                                           \
		check_fixture(fixture, /* whole= */ true);                                                             \
	}

#define FIXTURE_TESTS(name, fixture)                                                                                   \
	static void stepwise_##name(void **state)                                                                      \
	{                                                                                                              \
		(void)state;                                                                                           \
		check_fixture(fixture, /* whole= */ false);                                                            \
	}                                                                                                              \
	WHOLE_TEST(name, fixture)

#endif
