/*
 * Gate records in SQL: each ask is a task in the lane of its key, so that all who ask about one key on this node meet in
 * one lane, and share their commits with everybody else's work.
 *
 * What ends something that has begun (complete, remove, sweep) is never refused because others wait to begin: there is
 * at most one such ask for each acquisition that came through.
 */
#include <stdatomic.h>
#include <stdlib.h>

#include "gate/store.h"

struct gate_sql {
	struct gate_store store;
	const struct lanes *lanes;
	_Atomic size_t in_lanes;
};

/* The rows are about to go, and the lane is not done with the ticket yet: a response is kept as a copy until it is. */
static void store_sql_answered(struct gate_write *write)
{
	struct gate_ticket *ticket = (struct gate_ticket *)((char *)write - offsetof(struct gate_ticket, write));
	struct slice response = write->reply.response;
	char *copy = response.n ? malloc(response.n) : NULL;

	if (response.n && !copy)
		return; /* it stays GATE_UNAVAILABLE: nothing was changed */
	ticket->reply = write->reply;
	if (copy)
		memcpy(copy, response.p, response.n);
	ticket->reply.response = slice_of(copy, response.n);
}

/* Whatever the code: a task that was cut short by a stop has not answered. */
static void seat_done(struct seat *seat, enum hx_code code)
{
	struct gate_ticket *ticket = (struct gate_ticket *)((char *)seat - offsetof(struct gate_ticket, seat));
	struct gate_sql *s = (struct gate_sql *)ticket->store;
	char *copy = (char *)ticket->reply.response.p;

	(void)code;
	atomic_fetch_sub(&s->in_lanes, 1);
	gate_ticket_done(ticket); /* it is not ours any more */
	free(copy);
}

static void sql_ask(struct gate_store *store, struct gate_ticket *ticket)
{
	struct gate_sql *s = (struct gate_sql *)store;
	struct lane *lane = lanes_of(s->lanes, gate_write_subject(&ticket->ask));
	enum gate_op op = ticket->ask.op;
	bool ends = op == GATE_COMPLETE || op == GATE_REMOVE || op == GATE_SWEEP;

	ticket->reply = (struct gate_reply){.verdict = GATE_UNAVAILABLE};
	gate_write_init(&ticket->write, &ticket->ask);
	ticket->write.answered = store_sql_answered;
	ticket->seat = (struct seat){.task = &ticket->write.task, .done = seat_done, .deadline = ticket->by};
	atomic_fetch_add(&s->in_lanes, 1);
	if ((ends ? lane_submit_own(lane, &ticket->seat) : lane_submit(lane, &ticket->seat)) == HX_OK)
		return;
	atomic_fetch_sub(&s->in_lanes, 1);
	ticket->reply.certain = true;
	gate_ticket_done(ticket);
}

static void sql_free(struct gate_store *store)
{
	ASSERT(atomic_load(&((struct gate_sql *)store)->in_lanes) == 0);
	free(store);
}

static const struct gate_store_kind sql = {.name = "sql", .ask = sql_ask, .free = sql_free};

enum hx_code gate_sql_new(const struct lanes *lanes, struct clock *clock, struct gate_store **ret_store,
			  struct hx_error *err)
{
	struct gate_sql *s = calloc(1, sizeof *s);

	ASSERT(lanes && lanes->n > 0);
	if (!s)
		return error_set(err, HX_NO_MEMORY, "gate: no memory");
	s->store = (struct gate_store){.kind = &sql, .clock = clock};
	s->lanes = lanes;
	*ret_store = &s->store;
	return HX_OK;
}
