/* See held.h. */
#include "gate/held.h"

#include "base/digits.h"

#define RECORD_HEX_DIGITS 16 /* as in other lines about a record */

void gate_held_init(struct gate_held *held, struct log *log)
{
	*held = (struct gate_held){.log = log, .count = -1};
}

static void held_tell(struct log *log, const struct gate_sight *sight)
{
	char record[RECORD_HEX_DIGITS + 1];

	hex_write(sight->key, RECORD_HEX_DIGITS / 2, record);
	log_warn(log, "a record is held: nobody knows whether its request was done, and a person has to say so",
		 log_text("key", sight->key_text), log_text("endpoint", sight->endpoint), log_text("record", record));
}

/* Those that came since it was asked last are told one by one; the first time, and where they are many, how many. */
void gate_held_note(struct gate_held *held, const struct gate_reply *reply, struct mono_time asked)
{
	int64_t since_ms = (asked.ns - held->last.ns) / 1000000;
	size_t told = 0;

	if (reply->verdict != GATE_DONE)
		return;
	if (held->last.ns)
		for (; told < reply->sights_n && reply->sights[told].over_ms <= since_ms; told++)
			held_tell(held->log, &reply->sights[told]);
	if ((!held->last.ns && reply->held > 0) || told == GATE_SIGHTS_MAX)
		log_warn(held->log, "records are held: a person has to say whether their requests were done",
			 log_int("held", reply->held));
	atomic_store(&held->count, reply->held);
	held->last = asked;
}
