/* See trouble.h. */
#include "task/trouble.h"

#include <string.h>

#include "base/id.h"

static bool trouble_failed(const struct unit_result *result)
{
	return result->verdict == UNIT_FAILED || result->verdict == UNIT_UNKNOWN;
}

/* Others of the same group may have been well served. */
static bool is_of_unit(enum hx_code code)
{
	return code == HX_DATA_ERROR || code == HX_CONCURRENCY_ERROR || code == HX_ACTION_FAILED || code == HX_BUSY;
}

static bool is_of_store(const struct unit_result *result)
{
	return trouble_failed(result) && !is_of_unit(result->error.code) && result->error.code != HX_TOO_LARGE &&
	       result->error.code != HX_STOPPING;
}

static bool passed(struct mono_time since, int64_t ms, struct mono_time now)
{
	return now.ns >= mono_add_ms(since, ms).ns;
}

/* Not every unit has one, and the hash of a key (of the gate's) is none. */
static void tell_id(const char *prefix, int64_t id, char text[ID_TEXT_BYTES])
{
	text[0] = '\0';
	if (id > 0)
		id_format(prefix, id, text);
}

static void tell_unit(struct trouble *t, const struct unit *unit, const struct hx_error *error, struct mono_time now)
{
	char subject[ID_TEXT_BYTES], op[ID_TEXT_BYTES];

	if (now.ns < t->unit_not_before.ns) {
		t->units_unsaid++;
		return;
	}
	tell_id("subject", unit->subjects_n ? unit->subjects[0] : 0, subject); /* of which kind, it does not know */
	tell_id("op", unit->op, op);
	log_warn(t->log, "the store refused one unit of work", log_int(t->who, t->number),
		 log_text("statement", unit->lines[0].stmt->name), log_text("subject", subject), log_text("op", op),
		 log_text("code", hx_code_name(error->code)), log_text("detail", error->detail),
		 log_int("unsaid", (int64_t)t->units_unsaid));
	t->unit_not_before = mono_add_ms(now, TROUBLE_UNIT_MS);
	t->units_unsaid = 0;
}

static void tell_store(struct trouble *t, const struct unit *unit, const struct hx_error *error, uint64_t units_n,
		       struct mono_time now)
{
	bool first = !trouble_is_on(t) || passed(t->failed_at, TROUBLE_FORGET_MS, now);
	bool changed = strcmp(t->told.detail, error->detail) != 0;

	if (!first && !(changed && passed(t->told_at, TROUBLE_TELL_MS, now)))
		return;
	t->told = *error;
	t->told_at = now;
	log_error(t->log, "the store fails", log_int(t->who, t->number), log_int("units", (int64_t)units_n),
		  log_text("statement", unit->lines[0].stmt->name), log_text("code", hx_code_name(error->code)),
		  log_text("detail", error->detail));
}

static void end_trouble(struct trouble *t)
{
	log_info(t->log, "the store works again", log_int(t->who, t->number),
		 log_int("units_failed", (int64_t)t->failed_n));
	t->stmt = NULL;
	t->failed_n = 0;
}

void trouble_note(struct trouble *t, struct unit *const units[], const struct unit_result results[], size_t n,
		  struct mono_time now)
{
	uint64_t failed_n = 0;
	bool works = false;
	size_t last = 0;

	for (size_t i = 0; i < n; i++) {
		if (!units[i])
			continue;
		if (trouble_failed(&results[i]) && is_of_unit(results[i].error.code))
			tell_unit(t, units[i], &results[i].error, now);
		if (is_of_store(&results[i])) {
			failed_n++;
			last = i;
		}
		works |= !trouble_failed(&results[i]) && units[i]->lines[0].stmt == t->stmt;
	}
	if (failed_n) {
		tell_store(t, units[last], &results[last].error, failed_n, now);
		t->stmt = units[last]->lines[0].stmt;
		t->failed_at = now;
		t->failed_n += failed_n;
	} else if (works) {
		end_trouble(t);
	}
}
