/* Reading batches: their rows, lists, what is due. See batch.h; what changes them is batch_units.c and batch_item.c. */
#include "flow/batch.h"

#include <stdio.h>
#include <string.h>

#include "base/id.h"
#include "flow/batch_parts.h"

/* clang-format off */

#define COLUMNS_SQL                                                                                                    \
	"b.subject, s.status, s.version, s.fence, s.owner, s.until,"                                                   \
	" CAST(CASE WHEN s.owner IS NOT NULL AND s.until <= hx_now_ms() THEN 1 ELSE 0 END AS bigint), b.workspace,"    \
	" b.workflow, b.definition_version, b.batch_key, b.requester, b.trace, b.account, a.name, a.balance,"          \
	" b.cancel_requested, b.needs, b.total, b.next_n, b.succeeded, b.failed, b.unknown, b.accepted, b.cancelled,"  \
	" b.charged, b.refunded, b.late, b.flipped_to, b.cleanups, b.error, b.due_at, b.created_at, b.loaded_at,"      \
	" b.started_at, b.completed_at, b.expired,"                                                                    \
	" (SELECT count(*) FROM hx_batch_item WHERE batch = b.subject AND " ITEM_IS_OPEN " AND status = 'RUNNING'),"   \
	" (SELECT min(due_at) FROM hx_batch_item WHERE batch = b.subject AND " ITEM_IS_OPEN " AND status = 'PENDING')," \
	" hx_now_ms()"
#define OUT "itiitiittittt" "itiiiiiiiiii" "iiiiitiiiiii" "iii"
#define FROM " FROM hx_batch b JOIN hx_subject s ON s.id = b.subject JOIN hx_account a ON a.subject = b.account"

DB_STMT(stmt_read, "batch_read", "it", OUT,
	"SELECT " COLUMNS_SQL FROM " WHERE b.subject = ?1 AND (?2 = '' OR b.workspace = ?2)");

DB_STMT(stmt_read_key, "batch_read_key", "tt", OUT,
	"SELECT " COLUMNS_SQL FROM " WHERE b.workspace = ?1 AND b.batch_key = ?2");

DB_STMT(stmt_list, "batch_list", "tttii", OUT,
	"SELECT " COLUMNS_SQL FROM
	" WHERE b.workspace = ?1 AND b.expired = 0 AND (?2 = '' OR s.status = ?2) AND (?3 = '' OR b.workflow = ?3)"
	" AND b.subject < ?4 ORDER BY b.subject DESC LIMIT ?5");

DB_STMT(stmt_scan_due, "batch_scan_due", "i", "i",
	/* The function is volatile on PostgreSQL: bare, it would be a filter over all that will ever be due. */
	.sql = "SELECT subject FROM hx_batch WHERE due_at <= (SELECT hx_now_ms()) ORDER BY due_at LIMIT ?1");

DB_STMT(stmt_next_due, "batch_next_due", "", "i",
	"SELECT min(due_at) FROM hx_batch WHERE due_at IS NOT NULL");

/* clang-format on */

int64_t batch_kind(void)
{
	return subject_kind("batch", "");
}

void batch_read(struct unit *unit, struct slice workspace, int64_t subject)
{
	UNIT_ADD(unit, UNIT_ANY, &stmt_read, db_int(subject), db_text(workspace));
}

void batch_read_key(struct unit *unit, struct slice workspace, struct slice key)
{
	UNIT_ADD(unit, UNIT_ANY, &stmt_read_key, db_text(workspace), db_text(key));
}

void batch_list(struct unit *unit, const struct batch_filter *filter)
{
	UNIT_ADD(unit, UNIT_ANY, &stmt_list, db_text(filter->workspace), db_text(filter->status),
		 db_text(filter->workflow), db_int(filter->before), db_int(filter->limit));
}

void batch_scan_due(struct unit *unit, int64_t limit)
{
	UNIT_ADD(unit, UNIT_ANY, &stmt_scan_due, db_int(limit));
}

void batch_next_due(struct unit *unit)
{
	unit_add(unit, UNIT_ANY, &stmt_next_due, 0, NULL);
}

/* ---- a batch as it was read ---- */

int64_t batch_pending(const struct batch_row *row)
{
	return row->total - row->succeeded - row->failed - row->unknown - row->running;
}

static int64_t number(const struct db_value *value)
{
	return value->type == DB_NULL ? 0 : value->i;
}

static struct slice text(const struct db_value *value, struct arena *arena)
{
	return value->type == DB_NULL ? slice_of(NULL, 0) : arena_copy(arena, value->s);
}

#define CELL(column) db_cell(rows, i, column)

static void take_subject(const struct db_rows *rows, size_t i, struct arena *arena, struct batch_row *row)
{
	row->subject = CELL(BATCH_SUBJECT)->i;
	row->status = batch_status_of(CELL(BATCH_STATUS)->s);
	row->version = CELL(BATCH_VERSION)->i;
	row->fence = CELL(BATCH_FENCE)->i;
	row->owner = text(CELL(BATCH_OWNER), arena);
	row->owned = CELL(BATCH_OWNER)->type != DB_NULL;
	row->until = number(CELL(BATCH_UNTIL));
	row->past = CELL(BATCH_PAST)->i != 0;
	subject_assert_valid(row->version, row->fence, CELL(BATCH_OWNER), CELL(BATCH_UNTIL));
	row->now = CELL(BATCH_NOW)->i;
	ASSERT(row->status);
}

static void take_texts(const struct db_rows *rows, size_t i, struct arena *arena, struct batch_row *row)
{
	row->workspace = text(CELL(BATCH_WORKSPACE), arena);
	row->workflow = text(CELL(BATCH_WORKFLOW), arena);
	row->key = text(CELL(BATCH_KEY), arena);
	row->requester = text(CELL(BATCH_REQUESTER), arena);
	row->trace = text(CELL(BATCH_TRACE), arena);
	row->account_name = text(CELL(BATCH_ACCOUNT_NAME), arena);
	row->error = text(CELL(BATCH_ERROR), arena);
}

static void take_counts(const struct db_rows *rows, size_t i, struct batch_row *row)
{
	row->total = CELL(BATCH_TOTAL)->i;
	row->next_n = CELL(BATCH_NEXT_N)->i;
	row->succeeded = CELL(BATCH_SUCCEEDED)->i;
	row->failed = CELL(BATCH_FAILED_N)->i;
	row->unknown = CELL(BATCH_UNKNOWN)->i;
	row->accepted = CELL(BATCH_ACCEPTED)->i;
	row->cancelled = CELL(BATCH_CANCELLED_N)->i;
	row->charged = CELL(BATCH_CHARGED)->i;
	row->refunded = CELL(BATCH_REFUNDED)->i;
	row->late = CELL(BATCH_LATE)->i;
	row->flipped_to = CELL(BATCH_FLIPPED_TO)->i;
	row->cleanups = CELL(BATCH_CLEANUPS)->i;
	row->running = CELL(BATCH_RUNNING_N)->i;
}

void batch_row_take(const struct db_rows *rows, size_t i, const struct batch_policy *policy, struct arena *arena,
		    struct batch_row *row)
{
	*row = (struct batch_row){0};
	take_subject(rows, i, arena, row);
	take_texts(rows, i, arena, row);
	take_counts(rows, i, row);
	row->account = CELL(BATCH_ACCOUNT)->i;
	row->balance = CELL(BATCH_BALANCE)->i;
	row->cancel_requested = CELL(BATCH_CANCEL_REQUESTED)->i != 0;
	row->needs = CELL(BATCH_NEEDS)->type == DB_NULL ? -1 : CELL(BATCH_NEEDS)->i;
	row->loaded = CELL(BATCH_LOADED_AT)->type != DB_NULL;
	row->expired = CELL(BATCH_EXPIRED)->i != 0;
	row->definition_version = CELL(BATCH_DEFINITION_VERSION)->i;
	row->retry_at = number(CELL(BATCH_RETRY_AT));
	row->due_at = number(CELL(BATCH_DUE_AT));
	row->created_at = CELL(BATCH_CREATED_AT)->i;
	row->started_at = number(CELL(BATCH_STARTED_AT));
	row->completed_at = number(CELL(BATCH_COMPLETED_AT));
	if (policy)
		row->machine = policy->machine_of(policy->context, CELL(BATCH_WORKFLOW)->s, row->definition_version);
}

void batch_hold_of(const struct batch_row *row, const struct batch_policy *policy, struct arena *arena,
		   struct batch_hold *hold)
{
	char id[ID_TEXT_BYTES], prefix[ID_TEXT_BYTES + 2];

	id_format("batch", row->subject, id);
	snprintf(prefix, sizeof prefix, "%c%s/", ACCOUNT_OWN_KEY, id);
	*hold = (struct batch_hold){
		.subject = row->subject,
		.account = row->account,
		.fence = row->fence,
		.lease_ms = policy->lease_ms,
		.fence_floor = policy->fence_floor ? policy->fence_floor(policy->context) : 0,
		.machine = row->machine,
		.workspace = row->workspace,
		.requester = row->requester,
		.trace = row->trace,
		.ledger_prefix = arena_copy(arena, slice_str(prefix)),
	};
	if (row->machine && row->machine->definition->lease_ms)
		hold->lease_ms = row->machine->definition->lease_ms;
}
