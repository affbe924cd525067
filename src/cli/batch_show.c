/*
 * hapax batch show: the batch as a picture, and the line that is written over while somebody waits for it.
 *
 *	batch     batch_0ahqhgtdhmw01
 *	workflow  render, definition 1
 *	account   studio
 *	status    RUNNING, version 214
 *	created   2026-11-15T07:24:39.911Z
 *	started   2026-11-15T07:24:39.950Z
 *
 *	██████████████████████░░░░░░░░░░░░░░░░░░  55%
 *
 *	TOTAL  PENDING  RUNNING  SUCCEEDED  FAILED  UNKNOWN
 *	200    86       4        108        2       0
 *
 *	DECIDED  ACCEPTED  CANCELLED
 *	1        1         0
 *
 *	CHARGED  REFUNDED  PAID
 *	560      0         560
 *
 *	why: …
 *
 * A status and a decision are two things: an item that was cancelled before it was begun is both PENDING and cancelled.
 * They are therefore counted apart, and the decisions only where there are any.
 */
#include <stdio.h>

#include "base/json_number.h"
#include "base/json_walk.h"
#include "cli/bar.h"
#include "cli/batch_parts.h"
#include "cli/terminal.h"
#include "cli/why.h"

#define LINE_BYTES_MAX (1u << 20)
#define WATCHED_MS 250

/* ---- counts and money ---- */

int64_t batch_number(struct json batch, const char *name)
{
	struct json value;
	int64_t n;

	return json_find(batch, slice_str(name), &value) && json_int64(value, /* err= */ NULL, &n) == HX_OK ? n : 0;
}

/* Items that nothing more is done for. */
static int64_t items_done(struct json batch)
{
	return batch_number(batch, "succeeded") + batch_number(batch, "failed") + batch_number(batch, "unknown");
}

/* ---- the bar ---- */

/* Where nothing more is begun, a percentage alone would read as if it went on. */
static void add_bar_words(struct strbuf *out, struct client *client, struct json batch)
{
	int64_t done = items_done(batch), total = batch_number(batch, "total");
	struct slice status = client_member(client, batch, "status");

	if (slice_is(status, "CANCELLED"))
		strbuf_addf(out, "  cancelled, with %lld of %lld done", (long long)done, (long long)total);
	else if (slice_is(status, "CANCELLING"))
		strbuf_addf(out, "  cancelling, with %lld of %lld done", (long long)done, (long long)total);
	else
		strbuf_addf(out, "  %d%%", bar_percent(done, total));
}

static enum hx_code print_bar(struct client *client, struct json batch, struct hx_error *err)
{
	LOCAL_STRBUF(line, LINE_BYTES_MAX);

	strbuf_add_char(&line, '\n');
	bar_add(&line, items_done(batch), batch_number(batch, "total"), BAR_COLUMNS);
	add_bar_words(&line, client, batch);
	strbuf_add_char(&line, '\n');
	return text_print_line(&line, err);
}

/* ---- the picture ---- */

static const struct view *const head = &(const struct view){
	VIEW_FIELDS,
	.cut = true,
	.cells = CELLS({"batch", "{id}"}, {"workflow", "{workflow}, definition {+definitionVersion}"},
		       {"account", "{account}"},
		       {"status", "{status}, version {+version}"
				  "[{status=CANCELLING}|{status=CANCELLED}|{?cancelRequested}, to be cancelled]"},
		       {"needs", "[{needs} for the next item; a credit that suffices resumes it]"},
		       {"late", "[{+late} succeeded after they were cancelled; not charged]"},
		       {"key", "{idempotencyKey}"}, {"created", "{createdAt}"}, {"started", "{startedAt}"},
		       {"ended", "{completedAt}"}, {"due", "{dueAt}"}, {"error", "{error}"}),
};
static const struct view *const statuses = ONE_ROW({"TOTAL", "{+total}"}, {"PENDING", "{+pending}"},
						   {"RUNNING", "{+running}"}, {"SUCCEEDED", "{+succeeded}"},
						   {"FAILED", "{+failed}"}, {"UNKNOWN", "{+unknown}"});
static const struct view *const decisions = ONE_ROW({"DECIDED", "{accepted+cancelled}"}, {"ACCEPTED", "{+accepted}"},
						    {"CANCELLED", "{+cancelled}"});
static const struct view *const money = ONE_ROW({"CHARGED", "{+charged}"}, {"REFUNDED", "{+refunded}"},
						{"PAID", "{charged-refunded}"});

const struct view batch_items_view = {
	VIEW_LIST,
	.cut = true,
	.cells = CELLS({"N", "{n}"}, {"STATUS", "{status}"}, {"DECISION", "{decision}"}, {"COST", "{cost}"},
		       {"CHARGED", "{charged}"}, {"ATTEMPT", "{attempt}"}, {"INPUT", "{input:raw}"},
		       /* what the item gave back, if only too late; or what went wrong with it */
		       {"OUTPUT", "[{output:raw}|late: {late:raw}|{error}]"}),
};

/* With a line between it and what stands above. */
static enum hx_code print_below(const struct view *view, struct client *client, struct json batch, struct hx_error *err)
{
	putchar('\n');
	return view_print(view, client, &client->arena, batch, err);
}

/* The server is asked why last but for the items, which are in a list of the batch: the answer may be gone then. */
enum hx_code batch_print_picture(struct client *client, struct json batch, struct hx_error *err)
{
	bool asks_why = !wait_has_ended(client, batch);
	struct slice id = arena_copy(&client->arena, client_member(client, batch, "id"));
	struct json items;
	bool has_items = json_find(batch, slice_str("items"), &items); /* then it is in the arena */
	enum hx_code code = view_print(head, client, &client->arena, batch, err);

	if (!code)
		code = print_bar(client, batch, err);
	if (!code)
		code = view_print(statuses, client, &client->arena, batch, err);
	if (!code && batch_number(batch, "accepted") + batch_number(batch, "cancelled") > 0)
		code = print_below(decisions, client, batch, err);
	if (!code)
		code = print_below(money, client, batch, err);
	if (!code && asks_why && id.n > 0)
		why_print_below(client, id.p);
	return code || !has_items ? code : print_below(&batch_items_view, client, batch, err);
}

/* ---- how far it is ---- */

/* What a person has to know before anything else. */
static void add_status(struct strbuf *line, struct client *client, struct json batch)
{
	struct slice status = client_member(client, batch, "status");

	if (slice_is(status, "OUT_OF_CREDIT") && !text_member_is_true(batch, "cancelRequested"))
		strbuf_addf(line, "out of credit (the next item costs %lld)", (long long)batch_number(batch, "needs"));
	else if (slice_is(status, "CANCELLING"))
		strbuf_addf(line, "cancelling (%lld items, %lld refunded)", (long long)batch_number(batch, "cancelled"),
			    (long long)batch_number(batch, "refunded"));
	else if (text_member_is_true(batch, "cancelRequested"))
		strbuf_add_str(line, "to be cancelled");
	else
		text_add_shown(line, status);
	strbuf_add_char(line, ' ');
}

/* "  55%  110/200  ✓ 108  ✗ 2  540 charged  8.4/s" */
static void add_words(struct strbuf *line, struct json batch, int64_t waited_ms)
{
	int64_t done = items_done(batch), total = batch_number(batch, "total");

	strbuf_addf(line, " %d%%  %lld/%lld", bar_percent(done, total), (long long)done, (long long)total);
	strbuf_addf(line, "  ✓ %lld  ✗ %lld", (long long)batch_number(batch, "succeeded"),
		    (long long)batch_number(batch, "failed"));
	strbuf_addf(line, "  %lld charged", (long long)batch_number(batch, "charged"));
	bar_add_rate(line, done, waited_ms);
}

static void tell_progress(struct client *client, struct json batch, int64_t waited_ms)
{
	LOCAL_STRBUF(line, LINE_BYTES_MAX);

	add_status(&line, client, batch);
	bar_add(&line, items_done(batch), batch_number(batch, "total"), bar_told_columns());
	add_words(&line, batch, waited_ms);
	terminal_tell(line.p);
}

const struct wait batch_wait = {.noun = "batch", .path = BATCH_PATH, .watched_ms = WATCHED_MS, .tell = tell_progress};
