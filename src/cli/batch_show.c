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
#include "cli/batch_parts.h"
#include "cli/table.h"
#include "cli/terminal.h"
#include "cli/why.h"
#include "model/text.h"

#define LINE_BYTES_MAX (1u << 20)
#define WATCHED_MS 250
#define BAR_COLUMNS 40
#define RATE_MS 5000

static struct slice member(struct client *client, struct json object, const char *name)
{
	return text_of_member(object, name, &client->arena);
}

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

static int64_t paid(struct json batch)
{
	return batch_number(batch, "charged") - batch_number(batch, "refunded");
}

static struct slice number_words(struct client *client, int64_t n)
{
	const char *text = text_printf(&client->arena, "%lld", (long long)n);

	return text ? slice_str(text) : slice_of("", 0);
}

/* ", 2 failed": for what there is. */
static void add_count(struct strbuf *line, struct json batch, const char *name, const char **between)
{
	int64_t n = batch_number(batch, name);

	if (n == 0)
		return;
	strbuf_addf(line, "%s%lld %s", *between, (long long)n, name);
	*between = ", ";
}

/* ": 9 succeeded, 1 failed; 10 cancelled": by status, then by decision. */
static void add_counts(struct strbuf *line, struct json batch)
{
	static const char *const statuses[] = {"succeeded", "failed", "unknown"};
	static const char *const decisions[] = {"accepted", "cancelled", "late"};
	const char *between = ": ";

	for (size_t i = 0; i < sizeof statuses / sizeof *statuses; i++)
		add_count(line, batch, statuses[i], &between);
	between = "; ";
	for (size_t i = 0; i < sizeof decisions / sizeof *decisions; i++)
		add_count(line, batch, decisions[i], &between);
}

enum hx_code batch_print_line(struct client *client, struct json batch, const char *more, struct hx_error *err)
{
	int64_t total = batch_number(batch, "total");
	struct strbuf line;

	strbuf_init(&line, LINE_BYTES_MAX);
	text_add_shown(&line, member(client, batch, "workflow"));
	strbuf_add_char(&line, ' ');
	text_add_shown(&line, member(client, batch, "id"));
	strbuf_add_str(&line, ": ");
	text_add_shown(&line, member(client, batch, "status"));
	strbuf_addf(&line, ", %lld item%s", (long long)total, total == 1 ? "" : "s");
	add_counts(&line, batch);
	if (batch_number(batch, "charged") > 0)
		strbuf_addf(&line, "; %lld charged, %lld refunded, %lld paid",
			    (long long)batch_number(batch, "charged"), (long long)batch_number(batch, "refunded"),
			    (long long)paid(batch));
	strbuf_add_str(&line, more);
	return text_print_line(&line, err);
}

/* ---- the bar ---- */

static void add_bar(struct strbuf *out, int64_t done, int64_t total, size_t columns)
{
	size_t full = total > 0 ? (size_t)((double)done / (double)total * (double)columns) : 0;

	for (size_t i = 0; i < columns; i++)
		strbuf_add_str(out, i < full ? "█" : "░");
}

static int percent(int64_t done, int64_t total)
{
	return total > 0 ? (int)((double)done / (double)total * 100) : 0;
}

/* Where nothing more is begun, a percentage alone would read as if it went on. */
static void add_bar_words(struct strbuf *out, struct client *client, struct json batch)
{
	int64_t done = items_done(batch), total = batch_number(batch, "total");
	struct slice status = member(client, batch, "status");

	if (slice_is(status, "CANCELLED"))
		strbuf_addf(out, "  cancelled, with %lld of %lld done", (long long)done, (long long)total);
	else if (slice_is(status, "CANCELLING"))
		strbuf_addf(out, "  cancelling, with %lld of %lld done", (long long)done, (long long)total);
	else
		strbuf_addf(out, "  %d%%", percent(done, total));
}

static enum hx_code print_bar(struct client *client, struct json batch, struct hx_error *err)
{
	struct strbuf line;

	strbuf_init(&line, LINE_BYTES_MAX);
	strbuf_add_char(&line, '\n');
	add_bar(&line, items_done(batch), batch_number(batch, "total"), BAR_COLUMNS);
	add_bar_words(&line, client, batch);
	strbuf_add_char(&line, '\n');
	return text_print_line(&line, err);
}

/* ---- the picture ---- */

static struct slice status_words(struct client *client, struct json batch)
{
	struct slice status = member(client, batch, "status");
	bool flagged = text_member_is_true(batch, "cancelRequested") && !slice_is(status, "CANCELLING") &&
		       !slice_is(status, "CANCELLED");
	const char *text = text_printf(&client->arena, "%.*s, version %lld%s", SLICE_ARGS(status),
				       (long long)batch_number(batch, "version"), flagged ? ", to be cancelled" : "");

	return text ? slice_str(text) : status;
}

static struct slice needs_words(struct client *client, struct json batch)
{
	struct slice needs = member(client, batch, "needs");
	const char *text;

	if (needs.n == 0)
		return needs;
	text = text_printf(&client->arena, "%.*s for the next item; a credit that suffices resumes it",
			   SLICE_ARGS(needs));
	return text ? slice_str(text) : needs;
}

static struct slice late_words(struct client *client, struct json batch)
{
	const char *text;

	if (batch_number(batch, "late") == 0)
		return slice_of("", 0);
	text = text_printf(&client->arena, "%lld succeeded after they were cancelled; not charged",
			   (long long)batch_number(batch, "late"));
	return text ? slice_str(text) : slice_of("", 0);
}

static enum hx_code print_head(struct client *client, struct json batch, struct hx_error *err)
{
	static const char *const rows[][2] = {
		{"key", "idempotencyKey"}, {"created", "createdAt"}, {"started", "startedAt"},
		{"ended", "completedAt"},  {"due", "dueAt"},         {"error", "error"},
	};
	const char *workflow = text_printf(&client->arena, "%.*s, definition %lld",
					   SLICE_ARGS(member(client, batch, "workflow")),
					   (long long)batch_number(batch, "definitionVersion"));
	struct table table;

	table_init(&table, &client->arena, 2);
	table.line_max = terminal_columns();
	table_add_named(&table, "batch", member(client, batch, "id"));
	table_add_named(&table, "workflow", slice_str(workflow));
	table_add_named(&table, "account", member(client, batch, "account"));
	table_add_named(&table, "status", status_words(client, batch));
	table_add_named(&table, "needs", needs_words(client, batch));
	table_add_named(&table, "late", late_words(client, batch));
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
		table_add_named(&table, rows[i][0], member(client, batch, rows[i][1]));
	return table_print(&table, stdout, err);
}

static enum hx_code print_statuses(struct client *client, struct json batch, struct hx_error *err)
{
	static const char *const names[] = {"total", "pending", "running", "succeeded", "failed", "unknown"};
	enum { NAMES_N = sizeof names / sizeof *names };
	struct slice cells[NAMES_N];
	struct table table;

	table_init(&table, &client->arena, NAMES_N);
	TABLE_ADD(&table, slice_str("TOTAL"), slice_str("PENDING"), slice_str("RUNNING"), slice_str("SUCCEEDED"),
		  slice_str("FAILED"), slice_str("UNKNOWN"));
	for (size_t i = 0; i < NAMES_N; i++)
		cells[i] = number_words(client, batch_number(batch, names[i]));
	table_add(&table, cells);
	return table_print(&table, stdout, err);
}

static enum hx_code print_decisions(struct client *client, struct json batch, struct hx_error *err)
{
	int64_t accepted = batch_number(batch, "accepted"), cancelled = batch_number(batch, "cancelled");
	struct table table;

	if (accepted + cancelled == 0)
		return HX_OK;
	putchar('\n');
	table_init(&table, &client->arena, 3);
	TABLE_ADD(&table, slice_str("DECIDED"), slice_str("ACCEPTED"), slice_str("CANCELLED"));
	TABLE_ADD(&table, number_words(client, accepted + cancelled), number_words(client, accepted),
		  number_words(client, cancelled));
	return table_print(&table, stdout, err);
}

static enum hx_code print_money(struct client *client, struct json batch, struct hx_error *err)
{
	struct table table;

	table_init(&table, &client->arena, 3);
	TABLE_ADD(&table, slice_str("CHARGED"), slice_str("REFUNDED"), slice_str("PAID"));
	TABLE_ADD(&table, number_words(client, batch_number(batch, "charged")),
		  number_words(client, batch_number(batch, "refunded")), number_words(client, paid(batch)));
	return table_print(&table, stdout, err);
}

enum hx_code batch_print_picture(struct client *client, struct json batch, struct hx_error *err)
{
	bool asks_why = !wait_has_ended(client, batch);
	struct slice id = arena_copy(&client->arena, member(client, batch, "id"));
	enum hx_code code = print_head(client, batch, err);

	if (!code)
		code = print_bar(client, batch, err);
	if (!code)
		code = print_statuses(client, batch, err);
	if (!code)
		code = print_decisions(client, batch, err);
	if (!code) {
		putchar('\n');
		code = print_money(client, batch, err);
	}
	if (!code && asks_why && id.n > 0)
		why_print_below(client, id.p);
	return code;
}

/* ---- lists ---- */

static struct slice done_words(struct client *client, struct json batch)
{
	const char *text = text_printf(&client->arena, "%lld/%lld", (long long)items_done(batch),
				       (long long)batch_number(batch, "total"));

	return text ? slice_str(text) : slice_of("", 0);
}

enum hx_code batch_print_list(struct client *client, struct json answer, struct hx_error *err)
{
	struct json_iter it = json_iter_of(text_items(answer));
	struct table table;
	struct json batch;
	enum hx_code code;

	table_init(&table, &client->arena, 8);
	TABLE_ADD(&table, slice_str("ID"), slice_str("WORKFLOW"), slice_str("ACCOUNT"), slice_str("STATUS"),
		  slice_str("DONE"), slice_str("PAID"), slice_str("CREATED"), slice_str("KEY"));
	while (json_iter_element(&it, &batch))
		TABLE_ADD(&table, member(client, batch, "id"), member(client, batch, "workflow"),
			  member(client, batch, "account"), member(client, batch, "status"), done_words(client, batch),
			  number_words(client, paid(batch)), member(client, batch, "createdAt"),
			  member(client, batch, "idempotencyKey"));
	code = table_print(&table, stdout, err);
	if (!code)
		text_print_more(answer, &client->arena, stdout);
	return code;
}

/* As JSON: there a text and a number differ. */
static struct slice raw_member(struct json item, const char *name)
{
	struct json value;

	return json_find(item, slice_str(name), &value) && json_type(value) != JSON_NULL ? value.raw : slice_of("", 0);
}

/* What the item gave back, if only too late; or what went wrong with it. */
static struct slice outcome(struct client *client, struct json item)
{
	struct slice output = raw_member(item, "output"), late = raw_member(item, "late");
	const char *text;

	if (output.n > 0)
		return output;
	if (late.n == 0)
		return member(client, item, "error");
	text = text_printf(&client->arena, "late: %.*s", SLICE_ARGS(late));
	return text ? slice_str(text) : late;
}

enum hx_code batch_print_items(struct client *client, struct json answer, struct hx_error *err)
{
	struct json_iter it = json_iter_of(text_items(answer));
	struct table table;
	struct json item;
	enum hx_code code;

	table_init(&table, &client->arena, 8);
	table.line_max = terminal_columns();
	TABLE_ADD(&table, slice_str("N"), slice_str("STATUS"), slice_str("DECISION"), slice_str("COST"),
		  slice_str("CHARGED"), slice_str("ATTEMPT"), slice_str("INPUT"), slice_str("OUTPUT"));
	while (json_iter_element(&it, &item))
		TABLE_ADD(&table, member(client, item, "n"), member(client, item, "status"),
			  member(client, item, "decision"), member(client, item, "cost"),
			  member(client, item, "charged"), member(client, item, "attempt"), raw_member(item, "input"),
			  outcome(client, item));
	code = table_print(&table, stdout, err);
	if (!code)
		text_print_more(answer, &client->arena, stdout);
	return code;
}

/* ---- how far it is ---- */

/* What a person has to know before anything else. */
static void add_status(struct strbuf *line, struct client *client, struct json batch)
{
	struct slice status = member(client, batch, "status");

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

/* Items to a second, in tenths, over the last RATE_MS or twice that; -1: it is too early to tell. */
static int64_t rate_tenths(struct batch_wait *wait, int64_t done, int64_t waited_ms)
{
	struct batch_look now = {done, waited_ms};
	int64_t ms;

	if (wait->looks_n++ == 0)
		wait->older = wait->old = now;
	if (waited_ms - wait->old.waited_ms > RATE_MS) {
		wait->older = wait->old;
		wait->old = now;
	}
	ms = waited_ms - wait->older.waited_ms;
	return ms > 0 ? (done - wait->older.done) * 10000 / ms : -1;
}

/* "  55%  110/200  ✓ 108  ✗ 2  540 charged  8.4/s" */
static void add_words(struct strbuf *line, struct batch_wait *wait, struct json batch, int64_t waited_ms)
{
	int64_t done = items_done(batch), total = batch_number(batch, "total");
	int64_t tenths = rate_tenths(wait, done, waited_ms);

	strbuf_addf(line, " %d%%  %lld/%lld", percent(done, total), (long long)done, (long long)total);
	strbuf_addf(line, "  ✓ %lld  ✗ %lld", (long long)batch_number(batch, "succeeded"),
		    (long long)batch_number(batch, "failed"));
	strbuf_addf(line, "  %lld charged", (long long)batch_number(batch, "charged"));
	if (tenths >= 0)
		strbuf_addf(line, "  %lld.%lld/s", (long long)(tenths / 10), (long long)(tenths % 10));
}

/* The bar keeps its width, so that only what changes moves. */
static void tell_progress(struct wait *wait, struct client *client, struct json batch, int64_t waited_ms)
{
	size_t sixth = terminal_told_columns() / 6;
	struct strbuf line;

	strbuf_init(&line, LINE_BYTES_MAX);
	add_status(&line, client, batch);
	add_bar(&line, items_done(batch), batch_number(batch, "total"), sixth < BAR_COLUMNS ? sixth : BAR_COLUMNS);
	add_words(&line, (struct batch_wait *)wait /* its first member */, batch, waited_ms);
	terminal_tell(line.p);
	strbuf_release(&line);
}

void batch_wait_init(struct batch_wait *wait)
{
	*wait = (struct batch_wait){
		.wait = {.noun = "batch", .path = BATCH_PATH, .watched_ms = WATCHED_MS, .tell = tell_progress},
	};
}
