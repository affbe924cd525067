/* What all stores share: the way in, the way out, and what is recalled between the two. */
#include "gate/store.h"

#include "gate/recall.h"

static bool recalled(struct gate_store *store, struct gate_ticket *ticket)
{
	LOCAL_STRBUF(response, RECALL_BYTES_MAX);

	if (!recall_find(store->recall, &ticket->ask.claim, ticket->asked, &response) || response.failed)
		return false;
	ticket->reply = (struct gate_reply){.verdict = GATE_COMPLETED, .response = strbuf_slice(&response)};
	ticket->done(ticket);
	return true;
}

void gate_ask(struct gate_store *store, struct gate_ticket *ticket)
{
	struct mono_time now = {0};

	ticket->store = store;
	if (ticket->ask.endpoint.n > GATE_ENDPOINT_BYTES_MAX)
		ticket->ask.endpoint.n = GATE_ENDPOINT_BYTES_MAX;
	if (store->recall || store->timeout_ms || ticket->by.ns)
		now = clock_mono(store->clock);
	ticket->asked = now;
	if (store->recall && ticket->ask.op == GATE_ACQUIRE && recalled(store, ticket))
		return;
	if (!ticket->by.ns && store->timeout_ms && ticket->ask.op != GATE_SWEEP) /* for which nobody waits */
		ticket->by = mono_add_ms(now, store->timeout_ms);
	if (ticket->by.ns && now.ns >= ticket->by.ns) {
		ticket->reply = (struct gate_reply){.verdict = GATE_UNAVAILABLE, .certain = true};
		gate_ticket_done(ticket);
		return;
	}
	store->kind->ask(store, ticket);
}

/* A lifetime counts from before the store was asked, so that what is recalled ends before the record does. */
static void store_note(struct recall *recall, const struct gate_ticket *ticket)
{
	const struct gate_ask *ask = &ticket->ask;
	const struct gate_reply *reply = &ticket->reply;

	if (ask->op == GATE_ACQUIRE && reply->verdict == GATE_COMPLETED)
		recall_keep(recall, &ask->claim, reply->response, reply->ttl_left_ms, ticket->asked);
	else if (ask->op == GATE_COMPLETE && reply->verdict == GATE_DONE && !ask->instead)
		recall_keep(recall, &ask->claim, ask->response, ask->claim.ttl_ms, ticket->asked);
	else if (ask->op == GATE_FORGET || ask->op == GATE_RESOLVE)
		recall_drop(recall, ask->claim.key);
}

void gate_ticket_done(struct gate_ticket *ticket)
{
	if (ticket->store->recall)
		store_note(ticket->store->recall, ticket);
	ticket->done(ticket);
}

void gate_store_recall(struct gate_store *store)
{
	ASSERT(!store->recall);
	if (!store->kind->in_memory)
		store->recall = recall_new(); /* without memory there is nothing to recall, and that is all */
}

void gate_store_note_old(struct gate_store *store)
{
	store->old_until = mono_add_ms(clock_mono(store->clock), GATE_OLD_MS);
}

bool gate_store_has_old(const struct gate_store *store)
{
	return store->old_until.ns && clock_mono(store->clock).ns < store->old_until.ns;
}

bool gate_is_recalled(struct gate_store *store, const struct hx_gate_claim *claim)
{
	return store->recall && recall_find(store->recall, claim, clock_mono(store->clock), /* ret_response= */ NULL);
}

void gate_note_completed(struct gate_store *store, const struct hx_gate_claim *claim, struct slice response)
{
	if (store->recall)
		recall_keep(store->recall, claim, response, claim->ttl_ms, clock_mono(store->clock));
}

void gate_store_free(struct gate_store *store)
{
	struct recall *recall = store ? store->recall : NULL;

	if (store)
		store->kind->free(store); /* which may still answer, and so note */
	recall_free(recall);
}
