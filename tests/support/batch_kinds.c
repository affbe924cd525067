/* See batch_kinds.h. */
#include "support/batch_kinds.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

#include "flow/batch_item.h"
#include "flow/batch_retention.h"
#include "support/tally.h"

#define ASKS 2048 /* that may be under way at once: what a unit borrows must outlive it */
#define HOUR_MS 3600000
#define BESIDE 99999
#define COSTS ((const int64_t[]){10, 20, 30, 40})
#define ITEMS_N 4
#define SLICE 2

/* What units borrow, and what was read. */
struct batch_ask {
	char workspace[32], name[32], key[32];
	struct batch_row row;
	struct batch_hold hold;
	struct arena arena;
};

static struct batch_ask *ask_of(const struct kind_args *args)
{
	static struct batch_ask asks[ASKS];
	static size_t asks_n;
	struct batch_ask *ask = &asks[asks_n++ % ASKS];

	arena_release(&ask->arena);
	*ask = (struct batch_ask){0};
	arena_init(&ask->arena, 1u << 20);
	snprintf(ask->workspace, sizeof ask->workspace, "w%lld", (long long)args->subject);
	snprintf(ask->name, sizeof ask->name, "a%lld", (long long)args->subject);
	snprintf(ask->key, sizeof ask->key, "key%lld", (long long)args->stamp.op);
	return ask;
}

static int64_t account_of(const struct kind_args *args)
{
	return kind_made(args->subject, 0);
}

static const struct unit_result *ask_store(struct db *db, int64_t subject, struct arena *arena)
{
	struct unit *unit = arena_alloc(arena, sizeof *unit);
	struct unit_result *result = arena_zalloc(arena, sizeof *result);
	struct hx_error err = {0};

	unit_init(unit, /* op= */ 0);
	batch_read(unit, slice_str(""), subject);
	if (db_run_unit(db, unit, result, arena, &err) != HX_OK)
		fail_msg("%s", err.detail);
	return result;
}

/* What there is of the batch, one move ago if that is believed; NULL: there is none. */
static struct batch_ask *read_one(const struct kind_args *args, int64_t subject)
{
	struct batch_ask *ask = ask_of(args);
	const struct unit_result *result = args->read && subject == args->subject
						   ? args->read
						   : ask_store(args->db, subject, &ask->arena);

	if (result->rows[0].n == 0)
		return NULL;
	batch_row_take(&result->rows[0], 0, &tally_policy, &ask->arena, &ask->row);
	ask->row.version -= args->stale;
	ask->row.fence -= args->stale;
	batch_hold_of(&ask->row, &tally_policy, &ask->arena, &ask->hold);
	return ask;
}

static bool is(const struct batch_ask *ask, const char *status)
{
	return strcmp(ask->row.status, status) == 0;
}

/* Where it stands in this status. NULL: it does not. */
static struct batch_ask *read_at(const struct kind_args *args, const char *status)
{
	struct batch_ask *ask = read_one(args, args->subject);

	return ask && is(ask, status) ? ask : NULL;
}

/* And somebody holds it. */
static struct batch_ask *read_held(const struct kind_args *args, const char *status)
{
	struct batch_ask *ask = read_at(args, status);

	return ask && ask->row.owned ? ask : NULL;
}

/* Where items were begun. */
static struct batch_ask *read_begun(const struct kind_args *args)
{
	struct batch_ask *ask = read_one(args, args->subject);

	return ask && ask->row.next_n && !ask->row.expired ? ask : NULL;
}

/* ---- making ---- */

static void open_account(struct unit *unit, const struct kind_args *args, int64_t balance)
{
	struct batch_ask *ask = ask_of(args);

	account_create(unit, &args->stamp, slice_str(ask->workspace), slice_str(ask->name), account_of(args), balance);
}

void batch_open(struct unit *unit, const struct kind_args *args)
{
	open_account(unit, args, 1000);
}

void batch_open_poor(struct unit *unit, const struct kind_args *args)
{
	open_account(unit, args, 65);
}

static struct batch_spec spec_of(const struct kind_args *args, const struct batch_ask *ask, int64_t id, const char *key)
{
	return (struct batch_spec){.subject = id,
				   .account = account_of(args),
				   .workspace = slice_str(ask->workspace),
				   .requester = slice_str("me"),
				   .key = slice_str(key),
				   .machine = tally_machine()};
}

static void make(struct unit *unit, const struct kind_args *args, bool queued)
{
	struct batch_ask *ask = ask_of(args);
	struct batch_spec spec = spec_of(args, ask, args->subject, "key");

	batch_create_whole(unit, &args->stamp, &spec, tally_rows(COSTS, ITEMS_N, &ask->arena), ITEMS_N, queued);
}

void batch_make_held(struct unit *unit, const struct kind_args *args)
{
	make(unit, args, /* queued= */ false);
}

void batch_make_queued(struct unit *unit, const struct kind_args *args)
{
	make(unit, args, /* queued= */ true);
}

void batch_make_loading(struct unit *unit, const struct kind_args *args)
{
	struct batch_ask *ask = ask_of(args);
	struct batch_spec spec = spec_of(args, ask, args->subject, "key");

	batch_create(unit, &args->stamp, &spec, HOUR_MS);
}

void batch_make_beside(struct unit *unit, const struct kind_args *args)
{
	struct batch_ask *ask = ask_of(args);
	struct batch_spec spec = spec_of(args, ask, kind_made(args->subject, BESIDE), ask->key);

	batch_create_whole(unit, &args->stamp, &spec, tally_rows((const int64_t[]){30}, 1, &ask->arena), 1,
			   /* queued= */ true);
}

/* Where it is there, it is enough to meet its beginning. */
void batch_create_key(struct unit *unit, const struct kind_args *args)
{
	struct batch_ask *ask = read_one(args, args->subject);
	struct batch_spec spec;

	if (ask && ask->row.version > 3)
		return;
	ask = ask_of(args);
	spec = spec_of(args, ask, kind_made(args->subject, args->stamp.op), "key");
	if (args->stamp.op % 2)
		batch_create(unit, &args->stamp, &spec, HOUR_MS);
	else
		batch_create_whole(unit, &args->stamp, &spec, tally_rows(COSTS, 1, &ask->arena), 1, /* queued= */ true);
}

/* ---- loading ---- */

void batch_load(struct unit *unit, const struct kind_args *args)
{
	struct batch_ask *ask = read_at(args, BATCH_LOADING);
	const int64_t costs[] = {args->stamp.op, args->stamp.op + 1};

	if (ask)
		batch_load_slice(unit, &ask->hold, ask->row.total, tally_rows(costs, 2, &ask->arena));
}

void batch_loaded(struct unit *unit, const struct kind_args *args)
{
	struct batch_ask *ask = read_at(args, BATCH_LOADING);

	if (ask)
		batch_load_end(unit, &args->stamp, &ask->hold, ask->row.total + 2, /* queued= */ true);
}

void batch_add(struct unit *unit, const struct kind_args *args)
{
	struct batch_ask *ask = read_at(args, BATCH_PENDING);

	if (ask)
		batch_load_more(unit, &args->stamp, &ask->row, HOUR_MS);
}

void batch_lose_loader(struct unit *unit, const struct kind_args *args)
{
	struct batch_ask *ask = read_at(args, BATCH_LOADING);

	if (ask)
		batch_load_lost(unit, &args->stamp, &ask->row);
}

void batch_queue(struct unit *unit, const struct kind_args *args)
{
	struct batch_ask *ask = read_at(args, BATCH_PENDING);

	if (ask)
		batch_start(unit, &args->stamp, &ask->row);
}

/* ---- holders ---- */

static bool is_free(const struct batch_ask *ask)
{
	return (!ask->row.owned || ask->row.past) && !batch_is_terminal(ask->row.status) && !is(ask, BATCH_LOADING);
}

void batch_take(struct unit *unit, const struct kind_args *args)
{
	struct batch_ask *ask = read_one(args, args->subject);

	if (ask && is_free(ask) && !is(ask, BATCH_PENDING) && !is(ask, BATCH_CANCELLING))
		batch_seize(unit, &args->stamp, &ask->row, BATCH_RUNNING, HOUR_MS);
}

void batch_take_down(struct unit *unit, const struct kind_args *args)
{
	struct batch_ask *ask = read_one(args, args->subject);

	if (ask && is_free(ask))
		batch_seize(unit, &args->stamp, &ask->row, BATCH_CANCELLING, HOUR_MS);
}

void batch_take_beside(struct unit *unit, const struct kind_args *args)
{
	struct batch_ask *ask = read_one(args, kind_made(args->subject, BESIDE));

	if (ask && is_free(ask))
		batch_seize(unit, &args->stamp, &ask->row, BATCH_RUNNING, HOUR_MS);
}

void batch_flag_beside(struct unit *unit, const struct kind_args *args)
{
	struct batch_ask *ask = read_one(args, kind_made(args->subject, BESIDE));

	if (ask)
		batch_request_cancel(unit, &args->stamp, &ask->row);
}

void batch_stop_beside(struct unit *unit, const struct kind_args *args)
{
	struct batch_ask *ask = read_one(args, kind_made(args->subject, BESIDE));

	batch_stop_short(unit, &args->stamp, &ask->hold);
}

void batch_turn(struct unit *unit, const struct kind_args *args)
{
	struct batch_ask *ask = read_held(args, BATCH_RUNNING);

	if (ask)
		batch_begin_teardown(unit, &args->stamp, &ask->hold);
}

void batch_rest(struct unit *unit, const struct kind_args *args)
{
	struct batch_ask *ask = read_one(args, args->subject);

	if (ask && ask->row.owned && !is(ask, BATCH_LOADING))
		batch_let_go(unit, &args->stamp, &ask->hold, ask->row.status, HOUR_MS, /* failed_cleanup= */ true,
			     slice_str("why"));
}

void batch_stop(struct unit *unit, const struct kind_args *args)
{
	struct batch_ask *ask = read_held(args, BATCH_RUNNING);

	if (ask)
		batch_stop_short(unit, &args->stamp, &ask->hold);
}

static void end(struct unit *unit, const struct kind_args *args, struct batch_ask *ask, const char *to)
{
	const int64_t job_ids[] = {kind_made(args->subject, args->stamp.op)};
	const struct slice job_keys[] = {slice_str("key")};

	batch_end(unit, &args->stamp, &ask->hold, to, &ask->row, job_ids, job_keys, slice_str("{}"));
}

void batch_complete(struct unit *unit, const struct kind_args *args)
{
	struct batch_ask *ask = read_held(args, BATCH_RUNNING);

	if (ask)
		end(unit, args, ask, BATCH_COMPLETED);
}

void batch_cancel_last(struct unit *unit, const struct kind_args *args)
{
	struct batch_ask *ask = read_held(args, BATCH_CANCELLING);

	if (ask)
		end(unit, args, ask, BATCH_CANCELLED);
}

void batch_flag(struct unit *unit, const struct kind_args *args)
{
	struct batch_ask *ask = read_one(args, args->subject);

	if (ask && (is(ask, BATCH_RUNNING) || is(ask, BATCH_OUT_OF_CREDIT)))
		batch_request_cancel(unit, &args->stamp, &ask->row);
}

static void beat(struct unit *unit, const struct kind_args *args, int64_t lease_ms)
{
	struct batch_ask *ask = read_one(args, args->subject);

	if (ask && ask->row.owned)
		subject_heartbeat(unit, args->subject, ask->row.fence, lease_ms);
}

void batch_beat(struct unit *unit, const struct kind_args *args)
{
	beat(unit, args, HOUR_MS);
}

void batch_lapse(struct unit *unit, const struct kind_args *args)
{
	beat(unit, args, -HOUR_MS);
}

void batch_expire_old(struct unit *unit, const struct kind_args *args)
{
	struct batch_ask *ask = read_one(args, args->subject);

	if (ask && batch_is_terminal(ask->row.status))
		batch_expire(unit, args->subject, account_of(args), /* age_ms= */ -HOUR_MS);
}

void batch_credit(struct unit *unit, const struct kind_args *args)
{
	struct batch_ask *ask = ask_of(args);

	account_add_credit(unit, &args->stamp, account_of(args), args->stamp.op, slice_str(ask->key));
}

/* ---- items ---- */

void batch_item_start(struct unit *unit, const struct kind_args *args)
{
	struct batch_ask *ask = read_held(args, BATCH_RUNNING);

	if (ask)
		item_start(unit, &args->stamp, &ask->hold);
}

void batch_item_look(struct unit *unit, const struct kind_args *args)
{
	struct batch_ask *ask = read_held(args, BATCH_RUNNING);

	if (ask)
		item_look_up_start(unit, &ask->hold, args->rival_op);
}

static void end_item(struct unit *unit, const struct kind_args *args, struct item_end as)
{
	struct batch_ask *ask = read_begun(args);

	as.attempt = 1;
	if (ask && !batch_is_terminal(ask->row.status))
		item_end(unit, &args->stamp, &ask->hold, &as);
}

void batch_item_done(struct unit *unit, const struct kind_args *args)
{
	end_item(unit, args, (struct item_end){.n = 0, .status = ITEM_SUCCEEDED, .output = slice_str("\"art\"")});
}

void batch_item_returned(struct unit *unit, const struct kind_args *args)
{
	end_item(unit, args,
		 (struct item_end){
			 .n = 0, .status = ITEM_PENDING, .failure = true, .returns = true, .rest_ms = HOUR_MS});
}

void batch_succeed_1(struct unit *unit, const struct kind_args *args)
{
	end_item(unit, args, (struct item_end){.n = 1, .status = ITEM_SUCCEEDED, .output = slice_str("\"art\"")});
}

void batch_succeed_2(struct unit *unit, const struct kind_args *args)
{
	end_item(unit, args, (struct item_end){.n = 2, .status = ITEM_SUCCEEDED, .output = slice_str("\"art\"")});
}

void batch_unknown_2(struct unit *unit, const struct kind_args *args)
{
	end_item(unit, args, (struct item_end){.n = 2, .status = ITEM_UNKNOWN, .failure = true, .doubt = true});
}

void batch_fail_3(struct unit *unit, const struct kind_args *args)
{
	end_item(unit, args, (struct item_end){.n = 3, .status = ITEM_FAILED, .failure = true, .returns = true});
}

void batch_item_settle(struct unit *unit, const struct kind_args *args)
{
	struct batch_ask *ask = read_begun(args);

	if (ask && !batch_is_terminal(ask->row.status))
		item_settle(unit, &args->stamp, &ask->hold, /* n= */ 0, /* attempt= */ 1, slice_str("\"settled\""));
}

void batch_item_late(struct unit *unit, const struct kind_args *args)
{
	struct batch_ask *ask = read_begun(args);
	const struct item_end as = {.n = 0, .attempt = 1, .output = slice_str("\"late\"")};

	if (ask)
		item_late(unit, &args->stamp, &ask->hold, &as, kind_made(args->subject, args->stamp.op),
			  slice_str("key"), slice_str("{}"));
}

void batch_item_accept(struct unit *unit, const struct kind_args *args)
{
	struct batch_ask *ask = read_begun(args);

	if (ask)
		item_accept(unit, &args->stamp, &ask->hold, /* n= */ 1);
}

static void resolve(struct unit *unit, const struct kind_args *args, bool done)
{
	struct batch_ask *ask = read_begun(args);

	if (ask)
		item_resolve(unit, &args->stamp, &ask->hold, /* n= */ 2, done,
			     done ? slice_str("1") : slice_of(NULL, 0));
}

void batch_item_resolve_done(struct unit *unit, const struct kind_args *args)
{
	resolve(unit, args, /* done= */ true);
}

void batch_item_resolve_not_done(struct unit *unit, const struct kind_args *args)
{
	resolve(unit, args, /* done= */ false);
}

void batch_item_flip(struct unit *unit, const struct kind_args *args)
{
	struct batch_ask *ask = read_held(args, BATCH_CANCELLING);

	if (ask && ask->row.flipped_to < ask->row.total)
		item_flip(unit, &args->stamp, &ask->hold, ask->row.flipped_to, ask->row.flipped_to + SLICE);
}

void batch_item_left(struct unit *unit, const struct kind_args *args)
{
	struct batch_ask *ask = read_held(args, BATCH_CANCELLING);

	if (ask)
		item_read_left(unit, &ask->hold, 0, ITEMS_N);
}
