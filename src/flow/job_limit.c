/*
 * Limits of queues (model/limits.h, slot.h): how jobs of such a queue are claimed. A slot is held with the claim: taken in the unit that
 * claims the job, let go in the unit that ends that claim, whoever does (job_settle.c, or the run that takes its job away); so a worker
 * that is lost keeps it until its lease is over. A rate counts each claim.
 *
 *   due ─ claim ─┬ room, and not too early ─▶ the worker's, with a slot
 *                └ full ─▶ in line: due later, or when it is woken; with it all others of that key that were picked
 *
 * What stands in line is not due, so nobody looks at it: a customer with very many jobs holds up the others by the time that it takes to
 * put these in line, SLOT_WAITERS_MAX by a unit, once.
 */
#include "flow/answer.h"
#include "flow/job_parts.h"
#include "flow/shapes.h"
#include "task/states.h"

static const char *const kinds[] = {"queue", "queue rate"};

static const struct limits *limits_of(const struct job_claim_request *rq, struct slice queue)
{
	for (size_t i = 0; i < rq->queues_n; i++)
		if (slice_eq(rq->queues[i], queue))
			return rq->limits[i];
	return NULL;
}

/* ---- picks ---- */

enum { SUBJECT, QUEUE, PAYLOAD, VERSION, RANK };

static void pick(const struct job_claim *c, struct job_picks *picks, const struct db_value *row)
{
	struct job_pick *p = &picks->items[picks->n++];

	p->waiter = (struct slot_waiter){row[SUBJECT].i, row[VERSION].i, row[RANK].i};
	p->bounds = bounds_of(limits_of(c->rq, row[QUEUE].s), kinds, c->rq->workspace, row[QUEUE].s, limit_key_of_job,
			      row[PAYLOAD].s, c->arena);
	p->bounds.slot.of = p->bounds.rate.of = SLOT_OF_JOB;
	p->bounds.slot.rank = p->bounds.rate.rank = p->waiter.rank;
}

static bool stands_in_line(const struct job_claim *c, int64_t i)
{
	return c->lined_up >> i & 1;
}

static bool is_over(struct job_claim *c)
{
	while (c->at < c->picks->n && stands_in_line(c, c->at))
		c->at++;
	return c->at == c->picks->n;
}

/* On with the next, or with another look: there may be more, now that these are out of the way. */
static void go_pick(struct job_claim *c, const struct answer *answer)
{
	bool over = is_over(c), again = over && c->picks->n == JOB_PICKS_MAX && c->moved;

	c->stamp = flow_stamp(answer);
	if (!job_claim_has_room(c) || (over && !again))
		job_claim_go_on(c, answer);
	else if (again && job_claim_is_given_up(c))
		task_end(&c->task, HX_OK);
	else
		task_go(&c->task, again ? CLAIM_JOBS_PICKING : CLAIM_JOBS_TAKING);
}

void job_claim_take_picked(struct job_claim *c, const struct answer *answer)
{
	const struct db_rows *rows = &answer->result->rows[0];
	struct job_picks *picks = arena_zalloc(c->arena, sizeof *picks);

	if (answer->result->verdict != UNIT_WON) {
		job_claim_end_by_store(c);
		return;
	}
	for (size_t i = 0; picks && i < rows->n; i++)
		pick(c, picks, db_cell(rows, i, 0));
	c->picks = picks;
	c->at = 0;
	c->lined_up = 0;
	c->moved = false;
	if (c->arena->failed)
		task_end(&c->task, c->n ? HX_OK : HX_TOO_LARGE);
	else
		go_pick(c, answer);
}

/* ---- one of them ---- */

static const struct job_pick *picked(const struct job_claim *c)
{
	return &c->picks->items[c->at];
}

void job_claim_build_taking(const struct job_claim *c, struct unit *unit)
{
	const struct job_pick *p = picked(c);

	bounds_take(unit, &p->bounds, p->waiter.subject, /* nth= */ c->stamp.op, c->stamp.at.ms);
	job_claim_add(c, unit, c->limited, p->waiter.subject);
}

void job_claim_take_taken(struct job_claim *c, const struct answer *answer)
{
	struct unit unit;

	if (answer->result->verdict != UNIT_WON && answer->result->verdict != UNIT_LOST) {
		job_claim_end_by_store(c);
		return;
	}
	unit_init(&unit, c->stamp.op);
	job_claim_build_taking(c, &unit);
	if (answer->result->verdict == UNIT_WON)
		job_claim_take_jobs(c, &answer->result->rows[job_claim_line(&unit)]);
	c->moved |= answer->result->verdict == UNIT_WON;
	c->full = slot_full(&unit, answer->result);
	if (c->arena->failed) {
		c->n = 0;
		task_end(&c->task, HX_TOO_LARGE);
	} else if (c->full) {
		c->stamp = flow_stamp(answer);
		task_go(&c->task, CLAIM_JOBS_LINING_UP);
	} else {
		c->at++; /* claimed, or moved since: then it is found again, if it is to be */
		go_pick(c, answer);
	}
}

/* ---- a line ---- */

/* Those that wait for the same, from the one on that has found it full; one by one where each has another line to leave. */
static size_t waiting(const struct job_claim *c, struct slot_waiter waiters[SLOT_WAITERS_MAX], uint64_t *ret_picks)
{
	const struct bounds *bounds = &picked(c)->bounds;
	size_t n = 0, max = c->full == bounds->rate.name && bounds->slot.name ? 1 : SLOT_WAITERS_MAX;

	*ret_picks = 0;
	for (int64_t i = c->at; i < c->picks->n && n < max; i++) {
		const struct job_pick *p = &c->picks->items[i];

		if (stands_in_line(c, i) || (p->bounds.slot.name != c->full && p->bounds.rate.name != c->full))
			continue;
		*ret_picks |= UINT64_C(1) << i;
		waiters[n++] = p->waiter;
	}
	return n;
}

void job_claim_build_line_up(const struct job_claim *c, struct unit *unit)
{
	struct slot_waiter waiters[SLOT_WAITERS_MAX];
	uint64_t picks;
	size_t n = waiting(c, waiters, &picks);

	bounds_wait_jobs(unit, &picked(c)->bounds, c->full, waiters, n, c->stamp.at.ms);
}

void job_claim_take_lined_up(struct job_claim *c, const struct answer *answer)
{
	struct slot_waiter waiters[SLOT_WAITERS_MAX];
	uint64_t picks;
	size_t n = waiting(c, waiters, &picks);

	if (answer->result->verdict != UNIT_WON) {
		job_claim_end_by_store(c);
		return;
	}
	c->lined_up |= picks;
	c->in_line += n;
	c->moved = true;
	go_pick(c, answer);
}

static const struct task_shape pick_shape = SHAPE(struct job_pick, NULL,
	PART_WITH(INNER, struct job_pick, bounds, &bounds_shape));
const struct task_shape job_picks_shape = SHAPE(struct job_picks, NULL,
	PART_WITH(INNER, struct job_picks, items, &pick_shape));
