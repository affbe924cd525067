/*
 * Accounts: create, show, list, credit, the ledger.
 *
 * Creating one is a single unit, which carries the record of its Idempotency-Key. A credit is not: the balance that it answers
 * with is known only after it. But its own key, which the ledger has for ever, makes it safe to repeat.
 */
#include "api/api_history.h"
#include "api/api_list.h"
#include "base/excerpt.h"
#include "base/json_walk.h"
#include "flow/account.h"

static const char no_account[] = "there is no such account";

/* Without the bracket at its end. */
static void open_account(struct strbuf *text, struct slice name, int64_t balance, int64_t created_at)
{
	strbuf_add_char(text, '{');
	json_more_text(text, "id", name);
	json_more_int(text, "balance", balance);
	json_more_time(text, "createdAt", created_at);
}

static void add_account(struct strbuf *text, struct slice name, int64_t balance, int64_t created_at)
{
	open_account(text, name, balance, created_at);
	strbuf_add_char(text, '}');
}

/* By its name, so that it needs no look-up. */
static uint64_t accounts_lane_of(const struct http_call *call, struct slice name)
{
	return entity_hash(api_workspace(call), "account", name);
}

/* ---- reading the request ---- */

static bool read_amount(struct http_call *call, struct json body, const char *member, int64_t min, int64_t *ret_amount)
{
	struct json value;

	if (!json_find(body, slice_str(member), &value))
		return api_invalid(call, "%s is missing", member);
	return api_is_counted(value, min, ACCOUNT_AMOUNT_MAX, ret_amount) ||
	       api_invalid(call, "%s is a whole number of the smallest unit, from %lld to %lld, not %s", member,
			   (long long)min, (long long)ACCOUNT_AMOUNT_MAX, excerpt_of(value.raw).text);
}

static bool accounts_read_key(struct http_call *call, struct json body, struct slice *ret_key)
{
	struct json value;

	if (!json_find(body, slice_str("key"), &value))
		return api_refuse(call, HX_VALIDATION_ERROR, "key is missing");
	if (!api_key_checked(call, value, "key", ret_key))
		return false;
	if (ret_key->p[0] != ACCOUNT_OWN_KEY)
		return true;
	return api_invalid(call, "key must not begin with \"%c\", as those of the engine do: %s", ACCOUNT_OWN_KEY,
			   excerpt_of(*ret_key).text);
}

/* ---- create ---- */

static void accounts_build_create(struct api_query *query, struct unit *unit)
{
	account_create(unit, &query->single.stamp, api_workspace(query->call), query->name, query->single.fresh_id,
		       query->number);
}

static enum hx_code accounts_answered_create(struct api_query *query, const struct unit_result *result)
{
	query->detail = "an account of this id exists already";
	return result->verdict == UNIT_WON ? HX_OK : HX_ALREADY_EXISTS;
}

static void render_create(struct api_query *query)
{
	query->status = 201;
	add_account(&query->text, query->name, query->number, query->single.stamp.at.ms);
}

void api_account_create(struct http_call *call)
{
	static const char *const known[] = {"id", "balance", NULL};
	struct api_query query = {.call = call,
				  .build = accounts_build_create,
				  .answered = accounts_answered_create,
				  .render = render_create};
	struct json body;

	if (api_body(call, known, &body) && api_name_member(call, body, "id", "id must be a string", &query.name) &&
	    read_amount(call, body, "balance", /* min= */ 0, &query.number))
		api_query_ask(&query, accounts_lane_of(call, query.name));
}

/* ---- show and list ---- */

static void accounts_build_show(struct api_query *query, struct unit *unit)
{
	account_read(unit, api_workspace(query->call), query->name);
}

static enum hx_code accounts_answered_show(struct api_query *query, const struct unit_result *result)
{
	const struct db_rows *rows = &result->rows[0];

	query->detail = no_account;
	if (rows->n == 0)
		return HX_NOT_FOUND;
	add_account(&query->text, query->name, db_cell(rows, 0, 1)->i, db_cell(rows, 0, 3)->i);
	return HX_OK;
}

void api_account_show(struct http_call *call)
{
	struct api_query query = {.call = call,
				  .build = accounts_build_show,
				  .answered = accounts_answered_show,
				  .name = call_param(call, "id")};

	api_query_ask(&query, accounts_lane_of(call, query.name));
}

enum { LIST_NAME, LIST_BALANCE, LIST_CREATED_AT };

static const struct row_member account_members[] = {
	{"id", ROW_TEXT, .at = LIST_NAME},
	{"balance", ROW_INT, .at = LIST_BALANCE},
	{"createdAt", ROW_TIME, .at = LIST_CREATED_AT},
	{.name = NULL},
};

static void accounts_build_list(struct api_query *query, struct unit *unit)
{
	account_list(unit, api_workspace(query->call), query->after, query->limit + 1);
}

const struct api_list api_account_list = {
	.build = accounts_build_list,
	.cursor = CURSOR_TEXT,
	.column = LIST_NAME,
	.members = account_members,
};

/* ---- the ledger ---- */

enum { SEQ, AMOUNT, KEY, REASON, BALANCE, AT };

const struct row_member api_entry_members[] = {
	{"seq", ROW_INT, .at = SEQ},
	{"amount", ROW_INT, .at = AMOUNT},
	{"key", ROW_TEXT, .at = KEY},
	{"reason", ROW_TEXT, .at = REASON},
	{"balance", ROW_INT, .at = BALANCE},
	{"time", ROW_TIME, .at = AT},
	{.name = NULL},
};

static void build_ledger(struct api_query *query, struct unit *unit)
{
	struct slice workspace = api_workspace(query->call);

	account_read(unit, workspace, query->name);
	account_read_ledger(unit, workspace, query->name, query->number, query->limit + 1);
}

static enum hx_code check_account(struct api_query *query, const struct unit_result *result)
{
	query->detail = no_account;
	return result->rows[0].n ? HX_OK : HX_NOT_FOUND;
}

const struct api_list api_account_ledger = {
	.owner_name = "id",
	.build = build_ledger,
	.line = 1,
	.cursor = CURSOR_NUMBER,
	.column = SEQ,
	.check = check_account,
	.members = api_entry_members,
};

/* ---- credit ---- */

struct credit_call {
	struct api_task task;
	struct account_credit credit;
	struct account_credit_request rq;
};

static void write_credited(const void *of, struct strbuf *text)
{
	const struct credit_call *cc = of;

	open_account(text, cc->rq.name, cc->credit.balance, cc->credit.created_at);
	json_more_bool(text, "duplicate", cc->credit.was_there);
	strbuf_add_char(text, '}');
}

static const char *credit_detail(const struct credit_call *cc, enum hx_code code, char *room, size_t bytes)
{
	if (code == HX_NOT_FOUND)
		return no_account;
	if (code == HX_ALREADY_EXISTS)
		snprintf(room, bytes, "this key has credited another amount before: %lld, not %lld",
			 (long long)cc->credit.amount_there, (long long)cc->rq.amount);
	else if (code == HX_VALIDATION_ERROR)
		snprintf(room, bytes, "amount %lld would take the balance beyond its limit, %lld",
			 (long long)cc->rq.amount, (long long)ACCOUNT_BALANCE_MAX);
	else
		return NULL;
	return room;
}

static void credit_done(struct seat *seat, enum hx_code code)
{
	struct credit_call *cc = (struct credit_call *)seat;
	char room[200];

	api_task_end(&cc->task, code, credit_detail(cc, code, room, sizeof room),
		     &(struct api_told){200, .write = write_credited, .of = cc});
}

void api_account_credit(struct http_call *call)
{
	static const char *const known[] = {"amount", "key", NULL};
	struct account_credit_request rq = {.workspace = api_workspace(call), .name = call_param(call, "id")};
	struct credit_call *cc;
	struct json body;

	if (!api_body(call, known, &body) || !read_amount(call, body, "amount", /* min= */ 1, &rq.amount) ||
	    !accounts_read_key(call, body, &rq.key))
		return;
	cc = api_task_new(call, sizeof *cc, /* arena_bytes_max= */ 0, credit_done);
	if (!cc)
		return;
	cc->rq = rq;
	account_credit_init(&cc->credit, &cc->rq);
	api_task_start(&cc->task, &cc->credit.task, accounts_lane_of(call, rq.name));
}
