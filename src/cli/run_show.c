/*
 * hapax run show: the run as a picture.
 *
 *	run       run_0ahqhgtdhmw01
 *	workflow  order, definition 1
 *	status    WAITING, version 5
 *	…
 *	   STEP     STATUS     ATTEMPT  STARTED       TOOK   OUTPUT
 *	✓  reserve  COMPLETED  1        07:24:39.911  152ms  {"shelf": 7}
 *	◷  approve  WAITING    0        07:24:40.063
 *	·  paid     PENDING
 *
 *	why: waits for a person to decide the approval "approve", …
 */
#include <stdio.h>

#include "base/clock.h"
#include "base/duration.h"
#include "base/excerpt.h"
#include "base/json_walk.h"
#include "cli/run_parts.h"
#include "cli/terminal.h"
#include "cli/view.h"
#include "cli/why.h"
#include "model/text.h"

#define LINE_BYTES 400
#define WATCHED_MS 500
#define DAY_CHARACTERS 10  /* of "2026-11-15T07:24:39.911Z" */
#define TIME_CHARACTERS 12 /* after the T */

/* ---- times ---- */

/* False: there is no such member, or it is null. */
static bool time_of(struct client *client, struct json object, const char *name, struct wall_time *ret)
{
	struct slice text = client_member(client, object, name);

	return text.n > 0 && wall_time_parse(name, text, &(struct hx_error){0}, ret) == HX_OK;
}

/* "152ms", "3.2s", "12m 5s", "3h 20m", "2d 4h": how long something took, for people. */
static struct slice took_words(struct client *client, int64_t ms)
{
	struct arena *arena = &client->arena;
	int64_t s = ms / 1000;
	const char *text;

	if (ms < 0)
		return slice_of("", 0);
	if (s < 1)
		text = text_printf(arena, "%lldms", (long long)ms);
	else if (s < 60)
		text = text_printf(arena, "%lld.%llds", (long long)s, (long long)(ms % 1000 / 100));
	else if (s < 3600)
		text = text_printf(arena, "%lldm %llds", (long long)(s / 60), (long long)(s % 60));
	else if (s < 86400)
		text = text_printf(arena, "%lldh %lldm", (long long)(s / 3600), (long long)(s / 60 % 60));
	else
		text = text_printf(arena, "%lldd %lldh", (long long)(s / 86400), (long long)(s / 3600 % 24));
	return text ? slice_str(text) : slice_of("", 0);
}

static struct slice took(struct client *client, struct json object)
{
	struct wall_time from, to;

	if (!time_of(client, object, "startedAt", &from) || !time_of(client, object, "completedAt", &to))
		return slice_of("", 0);
	return took_words(client, to.ms - from.ms);
}

/* The time of day; on another day than the one that the run was created on, the day and the minute. */
static struct slice started(struct client *client, struct json step, struct slice created)
{
	struct slice text = client_member(client, step, "startedAt");
	const char *words;

	if (text.n < DAY_CHARACTERS + 1 + TIME_CHARACTERS || created.n < DAY_CHARACTERS)
		return text;
	if (memcmp(text.p, created.p, DAY_CHARACTERS) == 0)
		return slice_of(text.p + DAY_CHARACTERS + 1, TIME_CHARACTERS);
	words = text_printf(&client->arena, "%.*s %.5s", DAY_CHARACTERS, text.p, text.p + DAY_CHARACTERS + 1);
	return words ? slice_str(words) : text;
}

/* ---- steps ---- */

static const struct mark {
	const char *status, *sign, *colour;
} marks[] = {
	{"COMPLETED", "✓", "32"}, {"SKIPPED", "↷", "2"}, {"RUNNING", "▶", "36"},
	{"WAITING", "◷", "33"},   {"FAILED", "✗", "31"}, {"UNKNOWN", "?", "35"},
	{"PENDING", "·", "2"},    {"UNDONE", "↶", "2"}, /* COMPLETED, and compensated since */
};

static const struct mark *mark_of(struct slice status)
{
	static const struct mark none = {"", " ", NULL};

	for (size_t i = 0; i < sizeof marks / sizeof *marks; i++)
		if (slice_is(status, marks[i].status))
			return &marks[i];
	return &none;
}

/* "no more stock (ACTION_FAILED)" */
#define ERROR_TEXT "[{error/message} ({error/code})|{error}]"
/* What the step gave back, or what went wrong with it. */
#define OUTCOME_TEXT "[{error/message} ({error/code})|{error}|{output:raw}]"

static enum hx_code print_steps(struct client *client, struct json run, struct hx_error *err)
{
	struct slice created = client_member(client, run, "createdAt");
	struct json steps = json_trust(slice_str("[]")), step;
	struct json_iter it;
	struct table table;

	(void)json_find(run, slice_str("steps"), &steps); /* absent: none */
	it = json_iter_of(steps);
	table_init(&table, &client->arena, 7);
	table.line_max = terminal_columns();
	table.coloured = terminal_wants_colour();
	TABLE_ADD(&table, slice_of("", 0), slice_str("STEP"), slice_str("STATUS"), slice_str("ATTEMPT"),
		  slice_str("STARTED"), slice_str("TOOK"), slice_str("OUTPUT"));
	while (json_iter_element(&it, &step)) {
		bool undone = client_member(client, step, "compensatedAt").n > 0;
		struct slice status = undone ? slice_str("UNDONE") : client_member(client, step, "status");
		struct slice attempt = client_member(client, step, "attempt");
		const struct mark *mark = mark_of(status);

		TABLE_ADD(&table, slice_str(mark->sign), client_member(client, step, "name"), status,
			  slice_is(attempt, "0") ? slice_of("", 0) : attempt, started(client, step, created),
			  took(client, step), view_text(OUTCOME_TEXT, step, &client->arena));
		table_colour(&table, mark->colour);
	}
	return table_print(&table, stdout, err);
}

/* ---- the run ---- */

static const struct view *const head = &(const struct view){
	VIEW_FIELDS,
	.cut = true,
	.cells = CELLS(
		{"run", "{id}"},
		{"workflow", "{definitionId}[{?definitionVersion}, definition {definitionVersion}|, a function]"},
		{"status", "{status}, version {version}"}, {"owner", "{owner}"}, {"key", "{idempotencyKey}"},
		{"created", "{createdAt}"}, {"started", "{startedAt}"}, {"ended", "{completedAt}"},
		{"input", "{input}"}, {"output", "{output}"}, {"error", ERROR_TEXT}),
};

enum hx_code run_print_picture(struct client *client, struct json run, struct hx_error *err)
{
	bool asks_why = !wait_has_ended(client, run);
	struct slice id = client_member(client, run, "id");
	enum hx_code code = view_print(head, client, &client->arena, run, err);

	putchar('\n');
	if (!code)
		code = print_steps(client, run, err);
	if (!code && asks_why && id.n > 0)
		why_print_below(client, id.p);
	return code;
}

/* ---- how far it is ---- */

/* "run_0ahqhgtdhmw01 RUNNING, step charge, 3s" */
static void tell_progress(struct client *client, struct json run, int64_t waited_ms)
{
	struct slice step = client_member(client, run, "currentStep");
	char line[LINE_BYTES];

	snprintf(line, sizeof line, "%s %s%s%s, %s", excerpt_of(client_member(client, run, "id")).text,
		 excerpt_of(client_member(client, run, "status")).text, step.n ? ", step " : "", excerpt_of(step).text,
		 duration_text(waited_ms < 1000 ? 1000 : waited_ms / 1000 * 1000).text);
	terminal_tell(line);
}

const struct wait run_wait = {
	.noun = "run", .path = "/api/v1/workflow-runs", .watched_ms = WATCHED_MS, .tell = tell_progress};
