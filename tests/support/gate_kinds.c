/* See gate_kinds.h. */
#include "support/gate_kinds.h"

#include "gate/record.h"

#define DAY_MS (24 * 3600000)
#define GATE_ASKS 2048 /* that may be under way at once: what a unit borrows must outlive it */

static void put_number(int64_t number, unsigned char *ret_bytes)
{
	for (int i = 0; i < 8; i++)
		ret_bytes[i] = (unsigned char)((uint64_t)number >> (56 - 8 * i));
}

void kind_gate_key(int64_t number, unsigned char ret_key[HX_GATE_KEY_BYTES])
{
	memset(ret_key, 0, HX_GATE_KEY_BYTES);
	put_number(number, ret_key);
}

int64_t kind_gate_token(struct slice token)
{
	uint64_t number = 0;

	for (size_t i = 0; i < 8 && i < token.n; i++)
		number = number << 8 | (unsigned char)token.p[i];
	return (int64_t)number;
}

static struct gate_ask *gate_ask_of(enum gate_op op, const struct kind_args *args, int64_t token)
{
	static struct gate_ask asks[GATE_ASKS];
	static size_t asks_n;
	struct gate_ask *ask = &asks[asks_n++ % GATE_ASKS];

	*ask = (struct gate_ask){.op = op,
				 .claim = {.lease_ms = args->lease_ms, .ttl_ms = 9 * DAY_MS},
				 .response = slice_str(args->stamp.op % 2 ? "odd" : "even"),
				 .budget = 1000};
	kind_gate_key(op == GATE_SWEEP ? 0 : args->subject, ask->claim.key);
	put_number(token, ask->claim.token);
	return ask;
}

/* The unit that the task asks for. */
static void build_gate(struct unit *unit, const struct kind_args *args, const struct gate_ask *gate_ask)
{
	struct gate_write write;
	struct ask ask = {.unit = unit};

	gate_write_init(&write, gate_ask);
	write.task.kind->take(&write.task, &(struct answer){.kind = ANSWER_START, .id = args->stamp.op});
	write.task.kind->ask(&write.task, &ask);
}

void gate_acquire(struct unit *unit, const struct kind_args *args)
{
	build_gate(unit, args, gate_ask_of(GATE_ACQUIRE, args, args->stamp.op));
}

void gate_acquire_live(struct unit *unit, const struct kind_args *args)
{
	struct gate_ask *ask = gate_ask_of(GATE_ACQUIRE, args, args->stamp.op);

	ask->claim.lease_ms = DAY_MS;
	build_gate(unit, args, ask);
}

/* It has ended before it began, for all that follows. */
void gate_acquire_short(struct unit *unit, const struct kind_args *args)
{
	struct gate_ask *ask = gate_ask_of(GATE_ACQUIRE, args, args->stamp.op);

	ask->claim.ttl_ms = -9 * DAY_MS;
	build_gate(unit, args, ask);
}

void gate_acquire_held(struct unit *unit, const struct kind_args *args)
{
	struct gate_ask *ask = gate_ask_of(GATE_ACQUIRE, args, args->stamp.op);

	ask->claim.hold = 1;
	build_gate(unit, args, ask);
}

void gate_acquire_other(struct unit *unit, const struct kind_args *args)
{
	struct gate_ask *ask = gate_ask_of(GATE_ACQUIRE, args, args->stamp.op);

	ask->claim.fingerprint[0] = 1;
	build_gate(unit, args, ask);
}

/* A holder whose answer was lost. */
void gate_acquire_again(struct unit *unit, const struct kind_args *args)
{
	build_gate(unit, args, gate_ask_of(GATE_ACQUIRE, args, args->token));
}

/* Whoever did not get it reads it, in a unit of its own. */
void gate_read(struct unit *unit, const struct kind_args *args)
{
	static const struct unit_result lost = {.verdict = UNIT_LOST};
	struct gate_write write;
	struct ask ask = {.unit = unit};

	gate_write_init(&write, gate_ask_of(GATE_ACQUIRE, args, args->stamp.op));
	write.task.kind->take(&write.task, &(struct answer){.kind = ANSWER_START, .id = args->stamp.op});
	write.task.kind->take(&write.task,
			      &(struct answer){.kind = ANSWER_COMMIT, .id = args->stamp.op, .result = &lost});
	write.task.kind->ask(&write.task, &ask);
}

void gate_complete(struct unit *unit, const struct kind_args *args)
{
	build_gate(unit, args, gate_ask_of(GATE_COMPLETE, args, args->token));
}

void gate_remove(struct unit *unit, const struct kind_args *args)
{
	build_gate(unit, args, gate_ask_of(GATE_REMOVE, args, args->token));
}

void gate_forget(struct unit *unit, const struct kind_args *args)
{
	build_gate(unit, args, gate_ask_of(GATE_FORGET, args, args->token));
}

void gate_sweep(struct unit *unit, const struct kind_args *args)
{
	build_gate(unit, args, gate_ask_of(GATE_SWEEP, args, /* token= */ 0));
}

void gate_completed(struct unit *unit, const struct kind_args *args)
{
	const struct gate_ask *ask = gate_ask_of(GATE_COMPLETE, args, args->stamp.op);

	gate_add_completed(unit, &ask->claim, ask->response);
}

void gate_completion(struct unit *unit, const struct kind_args *args)
{
	gate_add_completion(unit, gate_ask_of(GATE_COMPLETE, args, args->stamp.op));
}
