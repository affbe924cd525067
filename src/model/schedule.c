/* See schedule.h. */
#include "model/schedule.h"

#include <stdio.h>

#include "base/clock.h"
#include "base/duration.h"
#include "base/excerpt.h"
#include "base/hash.h"
#include "base/json_canonical.h"
#include "base/json_number.h"
#include "base/json_string.h"
#include "base/json_walk.h"
#include "base/json_write.h"
#include "model/batch_definition.h"
#include "model/nearest.h"
#include "model/reader.h"

#define CATCH_UP_DEFAULT "24h"
#define CATCH_UP_DEFAULT_MS (INT64_C(24) * 60 * 60 * 1000)

const char *const schedule_overlaps[] = {"skip", "queue", "cancel", "allow", NULL};
const char *const schedule_members[] = {"workflow", "batch",   "fire",   "input", "cron", "every",  "timezone",
					"overlap",  "catchUp", "jitter", "from",  "to",   "paused", NULL};

/* What is being read: the first thing that is wrong with it ends it. */
struct reading {
	struct json object;
	struct arena *arena;
	struct hx_error *err;
	enum hx_code code;
	const char *catch_up; /* as it is spelt here */
	struct schedule_spec spec;
};

static void schedule_refuse(struct reading *r, const char *field, const char *words, struct slice value)
{
	if (!r->code)
		r->code = error_set(r->err, HX_VALIDATION_ERROR, "%s %s%s%s", field, words, value.p ? ", not " : "",
				    value.p ? excerpt_of(value).text : "");
}

/* The member, if it is there and nothing was wrong so far; null counts as absent. */
static bool schedule_find(struct reading *r, struct json object, const char *field, struct json *ret_value)
{
	return !r->code && json_find(object, slice_str(field), ret_value) && json_type(*ret_value) != JSON_NULL;
}

/* A member that is a text of 1 to SCHEDULE_TEXT_MAX bytes; .p NULL: it is not there. */
static struct slice schedule_text_of(struct reading *r, struct json object, const char *field)
{
	struct json value;
	struct slice text = {NULL, 0};

	if (!schedule_find(r, object, field, &value))
		return text;
	if (json_type(value) == JSON_STRING)
		text = json_string_decode(value, r->arena);
	if (!text.n || text.n > SCHEDULE_TEXT_MAX || memchr(text.p, '\0', text.n)) {
		schedule_refuse(r, field, "is a text of 1 to 255 bytes", value.raw);
		text = slice_of(NULL, 0);
	}
	return text;
}

static int64_t duration_of(struct reading *r, const char *field, struct slice *ret_text)
{
	int64_t ms = 0;

	*ret_text = schedule_text_of(r, r->object, field);
	if (ret_text->p && !r->code)
		r->code = duration_parse(field, *ret_text, r->err, &ms);
	return ms;
}

/* Rounded up to the second, as slots are; otherwise where it is not there. */
static int64_t moment_of(struct reading *r, const char *field, bool up, int64_t otherwise)
{
	struct slice text = schedule_text_of(r, r->object, field);
	struct wall_time time = {0};

	if (!text.p || r->code)
		return otherwise;
	r->code = wall_time_parse(field, text, r->err, &time);
	return floor_div(time.ms + (up ? 999 : 0), 1000);
}

/* ---- when ---- */

static void read_times(struct reading *r)
{
	struct schedule_spec *spec = &r->spec;
	int64_t every_ms = duration_of(r, "every", &spec->every);

	spec->cron = schedule_text_of(r, r->object, "cron");
	spec->timezone = schedule_text_of(r, r->object, "timezone");
	if (!spec->timezone.p)
		spec->timezone = slice_str("UTC");
	if (!r->code && !spec->cron.p == !every_ms)
		schedule_refuse(r, "cron", "or every says when it starts: one of them", slice_of(NULL, 0));
	if (every_ms % 1000)
		schedule_refuse(r, "every", "is of whole seconds", slice_of(NULL, 0));
	if (!r->code && !zone_name_is_good(spec->timezone))
		schedule_refuse(r, "timezone", "is a name of the system's tzdata, such as \"Europe/Berlin\"",
				spec->timezone);
	if (!r->code && spec->cron.p)
		r->code = cron_parse(spec->cron, r->err, &spec->timing.cron);
	spec->timing.every_s = every_ms / 1000;
	spec->timing.from_s = moment_of(r, "from", /* up= */ true, INT64_MIN);
	spec->timing.to_s = moment_of(r, "to", /* up= */ false, INT64_MAX);
	if (!r->code && spec->timing.to_s < spec->timing.from_s)
		schedule_refuse(r, "to", "is not before from", slice_of(NULL, 0));
	spec->jitter_ms = duration_of(r, "jitter", &spec->jitter);
}

/* ---- what becomes of slots ---- */

static void read_overlap(struct reading *r)
{
	struct slice word = schedule_text_of(r, r->object, "overlap");
	size_t i = 0;

	if (!word.p)
		return;
	while (schedule_overlaps[i] && !slice_is(word, schedule_overlaps[i]))
		i++;
	if (schedule_overlaps[i])
		r->spec.overlap = (enum schedule_overlap)i;
	else
		schedule_refuse(r, "overlap", "is skip, queue, cancel or allow", word);
}

/* none, last, all, or a time: all that are not older. {"all": "1h"} says the same as "1h". */
static void read_catch_up(struct reading *r)
{
	struct schedule_spec *spec = &r->spec;
	struct json value;
	struct slice word;

	spec->catch_up = CATCH_UP_ALL;
	spec->catch_up_ms = CATCH_UP_DEFAULT_MS;
	spec->catching_up = slice_str(CATCH_UP_DEFAULT);
	if (!schedule_find(r, r->object, r->catch_up, &value))
		return;
	word = json_type(value) == JSON_OBJECT ? schedule_text_of(r, value, "all")
					       : schedule_text_of(r, r->object, r->catch_up);
	if (r->code)
		return;
	spec->catching_up = word;
	if (slice_is(word, "none"))
		spec->catch_up = CATCH_UP_NONE;
	else if (slice_is(word, "last"))
		spec->catch_up = CATCH_UP_LAST;
	else if (slice_is(word, "all"))
		spec->catch_up_ms = 0;
	else if (!word.p || duration_parse(r->catch_up, word, r->err, &spec->catch_up_ms))
		schedule_refuse(r, r->catch_up, "is none, last, all, or a time like \"1h\": all that are not older",
				value.raw);
}

/* ---- what is started ---- */

static struct slice schedule_name_of(struct reading *r, struct json object, const char *field)
{
	struct slice name = schedule_text_of(r, object, field);

	if (!name.p)
		schedule_refuse(r, field, "is missing", slice_of(NULL, 0));
	return name;
}

/* Canonical, so that two that say the same are the same. */
static struct slice json_of(struct reading *r, struct json object, const char *field, enum json_type type)
{
	struct json value;
	struct strbuf text;

	if (!schedule_find(r, object, field, &value))
		return slice_of(NULL, 0);
	if (json_type(value) != type)
		schedule_refuse(r, field, type == JSON_OBJECT ? "is an object" : "is an array", value.raw);
	if (value.raw.n > SCHEDULE_INPUT_BYTES_MAX && !r->code)
		r->code = error_set(r->err, HX_TOO_LARGE, "%s is at most 1 MiB", field);
	if (r->code)
		return slice_of(NULL, 0);
	strbuf_init(&text, 2 * value.raw.n + 24);
	r->code = json_canonical(value, r->arena, r->err, &text);
	return arena_keep(r->arena, &text);
}

static void known_members(struct reading *r, struct json object, const char *where, const char *const known[])
{
	struct json_iter it = json_iter_of(object);
	struct json name, value;

	while (!r->code && json_iter_member(&it, &name, &value)) {
		size_t i = 0;

		while (known[i] && !json_string_is(name, slice_str(known[i])))
			i++;
		if (!known[i])
			r->code = error_set(r->err, HX_VALIDATION_ERROR, "%s%s is not known here%s", where,
					    excerpt_of(name.raw).text,
					    nearest_words(json_string_view(name, r->arena), known, "\"", "\"").text);
	}
}

/* The same is asked of it as of one that is put in by hand. */
static void read_item(struct reading *r, struct json item)
{
	static const char *const members[] = {"input", "cost", NULL};
	struct json cost;
	int64_t number;
	bool good = json_type(item) == JSON_OBJECT && json_find(item, slice_str("cost"), &cost) &&
		    json_type(cost) == JSON_NUMBER;

	for (size_t i = 0; good && i < cost.raw.n; i++)
		good = cost.raw.p[i] >= '0' && cost.raw.p[i] <= '9';
	if (!good || json_int64(cost, /* err= */ NULL, &number) || number > BATCH_COST_MAX)
		schedule_refuse(r, "items", "have a cost, a whole number of the smallest unit, from 0 to 1000000000",
				item.raw);
	else
		known_members(r, item, "items: ", members);
}

static void read_items(struct reading *r, struct json batch)
{
	struct json items, item;
	struct json_iter it;

	if (!schedule_find(r, batch, "items", &items) || json_type(items) != JSON_ARRAY) {
		schedule_refuse(r, "items", "is an array of {\"input\", \"cost\"}", slice_of(NULL, 0));
		return;
	}
	it = json_iter_of(items);
	for (; !r->code && json_iter_element(&it, &item); r->spec.items_n++)
		read_item(r, item);
	if (r->spec.items_n < 1 || r->spec.items_n > SCHEDULE_ITEMS_MAX)
		schedule_refuse(r, "items", "are 1 to 1000 for a slot", slice_of(NULL, 0));
	r->spec.items = json_of(r, batch, "items", JSON_ARRAY);
}

static void read_batch(struct reading *r, struct json batch)
{
	static const char *const members[] = {"workflow", "account", "data", "items", NULL};

	r->spec.starts = SCHEDULE_STARTS_BATCH;
	known_members(r, batch, "batch: ", members);
	r->spec.workflow = schedule_name_of(r, batch, "workflow");
	r->spec.account = schedule_name_of(r, batch, "account");
	r->spec.data = json_of(r, batch, "data", JSON_OBJECT);
	if (r->spec.data.n > BATCH_DATA_BYTES_MAX && !r->code)
		r->code = error_set(r->err, HX_TOO_LARGE, "data of a batch is at most 16 KiB");
	read_items(r, batch);
}

static void read_fire(struct reading *r, struct json fire)
{
	static const char *const members[] = {"workflow", "id", "step", "input", NULL};

	r->spec.starts = SCHEDULE_FIRES;
	known_members(r, fire, "fire: ", members);
	r->spec.workflow = schedule_name_of(r, fire, "workflow");
	r->spec.entity = schedule_name_of(r, fire, "id");
	r->spec.step = schedule_name_of(r, fire, "step");
	r->spec.input = json_of(r, fire, "input", JSON_OBJECT);
}

static void read_starts(struct reading *r)
{
	struct json value;
	bool run = schedule_find(r, r->object, "workflow", &value), fire = schedule_find(r, r->object, "fire", &value),
	     batch = schedule_find(r, r->object, "batch", &value);

	if (run + batch + fire != 1)
		schedule_refuse(r, "workflow,", "batch or fire says what is started: one of them", slice_of(NULL, 0));
	else if (fire)
		(void)schedule_find(r, r->object, "fire", &value);
	if ((batch || fire) && !r->code && json_type(value) != JSON_OBJECT)
		schedule_refuse(r, batch ? "batch" : "fire", "is an object", slice_of(NULL, 0));
	else if (batch)
		read_batch(r, value);
	else if (fire)
		read_fire(r, value);
	else
		r->spec.workflow = schedule_name_of(r, r->object, "workflow");
	if (run)
		r->spec.input = json_of(r, r->object, "input", JSON_OBJECT);
	else if (schedule_find(r, r->object, "input", &value))
		schedule_refuse(r, "input", "belongs to a workflow", slice_of(NULL, 0));
}

static void read_paused(struct reading *r)
{
	struct json value;

	r->spec.paused_given = schedule_find(r, r->object, "paused", &value);
	if (!r->spec.paused_given)
		return;
	if (json_type(value) == JSON_BOOL)
		r->spec.paused = json_bool(value);
	else
		schedule_refuse(r, "paused", "is true or false", value.raw);
}

enum hx_code schedule_spec_read(struct json object, bool file, struct arena *arena, struct hx_error *err,
				struct schedule_spec *ret_spec)
{
	static const char *const schedule_file_fields[] = {
		"schedule", "kind",    "workflow", "batch",  "fire", "input", "cron",   "every",
		"timezone", "overlap", "catch_up", "jitter", "from", "to",    "paused", NULL};
	struct reading r = {.object = object, .arena = arena, .err = err, .catch_up = file ? "catch_up" : "catchUp"};

	if (json_type(object) != JSON_OBJECT)
		return error_set(err, HX_VALIDATION_ERROR, "a schedule is an object");
	known_members(&r, object, "", file ? schedule_file_fields : schedule_members);
	read_starts(&r);
	read_times(&r);
	read_overlap(&r);
	read_catch_up(&r);
	read_paused(&r);
	if (!r.code && arena->failed)
		r.code = arena_error(arena, err);
	if (!r.code)
		*ret_spec = r.spec;
	return r.code;
}

/* ---- and back ---- */

static void write_what(const struct schedule_spec *spec, struct strbuf *text)
{
	if (spec->starts == SCHEDULE_STARTS_RUN) {
		json_more_text(text, "workflow", spec->workflow);
		json_more_json(text, "input", spec->input.p ? spec->input : slice_str("{}"));
		return;
	}
	json_more(text, spec->starts == SCHEDULE_FIRES ? "fire" : "batch");
	strbuf_add_char(text, '{');
	json_more_text(text, "workflow", spec->workflow);
	if (spec->starts == SCHEDULE_FIRES) {
		json_more_text(text, "id", spec->entity);
		json_more_text(text, "step", spec->step);
		if (spec->input.p)
			json_more_json(text, "input", spec->input);
	} else {
		json_more_text(text, "account", spec->account);
		if (spec->data.p)
			json_more_json(text, "data", spec->data);
		json_more_json(text, "items", spec->items);
	}
	strbuf_add_char(text, '}');
}

static void write_moment(struct strbuf *text, const char *member, int64_t s)
{
	char words[WALL_TIME_TEXT_BYTES];

	wall_time_format((struct wall_time){s == INT64_MIN || s == INT64_MAX ? 0 : s * 1000}, words);
	json_more_word(text, member, s == INT64_MIN || s == INT64_MAX ? NULL : words);
}

void schedule_spec_write(const struct schedule_spec *spec, struct strbuf *text)
{
	strbuf_add_char(text, '{');
	write_what(spec, text);
	json_more_text(text, "cron", spec->cron);
	json_more_text(text, "every", spec->every);
	json_more_text(text, "timezone", spec->timezone);
	json_more_word(text, "overlap", schedule_overlaps[spec->overlap]);
	json_more_text(text, "catchUp", spec->catching_up);
	json_more_text(text, "jitter", spec->jitter);
	write_moment(text, "from", spec->timing.from_s);
	write_moment(text, "to", spec->timing.to_s);
	strbuf_add_char(text, '}');
}

/* ---- slots ---- */

void schedule_slot_format(int64_t slot_s, char text[SCHEDULE_SLOT_BYTES])
{
	char whole[WALL_TIME_TEXT_BYTES];

	wall_time_format((struct wall_time){slot_s * 1000}, whole);
	snprintf(text, SCHEDULE_SLOT_BYTES, "%.19sZ", whole);
}

/* By SHA-256: the same on every machine. */
int64_t schedule_jitter_ms(const struct schedule_spec *spec, struct slice name, int64_t slot_s)
{
	char slot[SCHEDULE_SLOT_BYTES];
	uint8_t digest[SHA256_BYTES];
	uint64_t hash = 0;

	if (!spec->jitter_ms)
		return 0;
	schedule_slot_format(slot_s, slot);
	sha256_pair(name, slice_str(slot), digest);
	for (int i = 0; i < 7; i++)
		hash = hash << 8 | digest[i];
	return (int64_t)(hash % (uint64_t)spec->jitter_ms);
}
