/* Why a schedule starts nothing: see why.h. */
#include "base/clock.h"
#include "flow/schedule.h"
#include "flow/why.h"

static void add_time(struct why *why, int64_t ms)
{
	char text[WALL_TIME_TEXT_BYTES];

	wall_time_format((struct wall_time){ms}, text);
	strbuf_add_str(&why->words, text);
}

static void say(struct why *why, enum why_reason reason, const char *words)
{
	why->reason = reason;
	strbuf_add_str(&why->words, words);
}

/* Its slot is due, and nobody has started it. */
static void say_due(struct why *why, int64_t since, bool known, bool function)
{
	say(why, WHY_SCHEDULE_DUE,
	    function
		    ? "cannot be started unless somebody polls for it: its workflow is not known here; its slot is due since "
	    : known ? "waits for a node to start its slot, which is due since "
		    : "cannot be started, because its workflow or its timezone is not known here; its slot is due since ");
	add_time(why, since);
}

void why_schedule(struct why *why, const struct schedule_row *row, bool known, bool function)
{
	int64_t since = schedule_due_since(row); /* not due_at: what cannot be started is put off */

	if (row->waiting && row->open) {
		say(why, WHY_SCHEDULE_OPEN, "");
		strbuf_addf(&why->words, "%lld slot%s wait%s for what it has started before to end",
			    (long long)row->waiting, row->waiting == 1 ? "" : "s", row->waiting == 1 ? "s" : "");
	} else if (since) {
		say_due(why, since, known, function);
	} else if (row->paused) {
		say(why, WHY_SCHEDULE_PAUSED, "waits for a person to resume it");
	} else if (row->slot_at) {
		say(why, WHY_SCHEDULE_SLOT, "waits for its next slot, at ");
		add_time(why, row->slot_at);
	} else {
		say(why, WHY_SCHEDULE_END, "waits for nothing: no slot is left");
	}
}
