/*
 * Gate records in a store of the user's own: struct hx_gate_store in hapax.h, called in the thread that asks.
 *
 * What comes back is checked, since it is not ours: a verdict that there is not, or a code other than HX_OK, is
 * GATE_UNAVAILABLE. Nothing is repeated here; whether an answer that was lost is asked for again before
 * HX_STORE_UNAVAILABLE is said is the table's own affair, and whoever drives the gate tries completions again.
 *
 * The table has nothing for LOOK, FORGET, RESOLVE and TALLY, which are for people: who brings a store of his own looks
 * into it with tools of his own. They come from `hapax gate` alone, which opens its stores by url, so that here they
 * are a programmer's mistake.
 */
#include <stdlib.h>

#include "gate/store.h"

struct gate_user {
	struct gate_store store;
	struct hx_gate_store table;
};

_Static_assert((int)GATE_ACQUIRED == HX_GATE_ACQUIRED && (int)GATE_COMPLETED == HX_GATE_COMPLETED &&
		       (int)GATE_IN_FLIGHT == HX_GATE_IN_FLIGHT && (int)GATE_HELD == HX_GATE_HELD &&
		       (int)GATE_MISMATCHED == HX_GATE_MISMATCHED && (int)GATE_OTHER_CALLER == HX_GATE_OTHER_CALLER,
	       "an acquisition has the same verdicts in both lists");

static void acquire(const struct hx_gate_store *table, const struct hx_gate_claim *claim, struct gate_reply *reply)
{
	struct hx_gate_found found = {.verdict = HX_GATE_IN_FLIGHT}; /* a table that says nothing lets nobody in */

	if (table->acquire(table->data, claim, &found))
		return;
	if ((unsigned)found.verdict <= HX_GATE_OTHER_CALLER)
		reply->verdict = (enum gate_verdict)found.verdict;
	reply->created_ms = found.created_ms;
	if (reply->verdict == GATE_IN_FLIGHT)
		reply->lease_left_ms = found.lease_left_ms;
	if (reply->verdict == GATE_COMPLETED)
		reply->response = slice_of(found.response, found.response_bytes);
}

static void complete(const struct hx_gate_store *table, const struct gate_ask *ask, struct gate_reply *reply)
{
	int stale = 0;

	if (table->complete(table->data, ask->claim.key, ask->claim.token, ask->response.p, ask->response.n,
			    ask->claim.ttl_ms, &stale) == HX_OK)
		reply->verdict = stale ? GATE_STALE : GATE_DONE;
}

static void remove_own(const struct hx_gate_store *table, const struct hx_gate_claim *claim, struct gate_reply *reply)
{
	int stale = 0;

	if (table->remove(table->data, claim->key, claim->token, &stale) == HX_OK)
		reply->verdict = stale ? GATE_STALE : GATE_DONE;
}

static void store_user_sweep(const struct hx_gate_store *table, int64_t budget, struct gate_reply *reply)
{
	if (!table->sweep || table->sweep(table->data, budget, &reply->removed) == HX_OK)
		reply->verdict = GATE_DONE;
}

static void user_ask(struct gate_store *store, struct gate_ticket *ticket)
{
	const struct hx_gate_store *table = &((struct gate_user *)store)->table;
	const struct gate_ask *ask = &ticket->ask;

	ticket->reply = (struct gate_reply){.verdict = GATE_UNAVAILABLE};
	if (ask->op == GATE_ACQUIRE)
		acquire(table, &ask->claim, &ticket->reply);
	else if (ask->op == GATE_COMPLETE)
		complete(table, ask, &ticket->reply);
	else if (ask->op == GATE_REMOVE)
		remove_own(table, &ask->claim, &ticket->reply);
	else if (ask->op == GATE_SWEEP)
		store_user_sweep(table, ask->budget, &ticket->reply);
	else
		ASSERT(!"a user's store is looked into with the user's own tools");
	gate_ticket_done(ticket);
}

static void user_free(struct gate_store *store)
{
	free(store);
}

static const struct gate_store_kind user = {.name = "user", .ask = user_ask, .free = user_free};

enum hx_code gate_user_new(const struct hx_gate_store *table, struct clock *clock, struct gate_store **ret_store,
			   struct hx_error *err)
{
	struct gate_user *u;

	if (!table->acquire || !table->complete || !table->remove)
		return error_set(err, HX_CONFIG_ERROR, "gate: a store needs acquire, complete and remove");
	u = malloc(sizeof *u);
	if (!u)
		return error_set(err, HX_NO_MEMORY, "gate: no memory");
	*u = (struct gate_user){.store = {.kind = &user, .clock = clock}, .table = *table};
	*ret_store = &u->store;
	return HX_OK;
}
