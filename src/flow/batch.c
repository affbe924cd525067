/* Reading batches: their rows, lists, what is due. See batch.h; what changes them is batch_units.c and batch_item.c. */
#include "flow/batch.h"

#include <stdio.h>
#include <string.h>

#include "base/id.h"
#include "flow/batch_parts.h"
#include "flow/due_watch.h"
#include "flow/page.h"
#include "flow/shapes.h"

#define OPEN_ITEMS(what, status_)                                                                                      \
	"(SELECT " what " FROM hx_batch_item WHERE batch = b.subject AND " ITEM_IS_OPEN " AND status = '" status_ "')"
#define COLUMNS_SQL BATCH_FIELDS(COLUMN_SQL) "hx_now_ms()"
#define OUT BATCH_FIELDS(COLUMN_OUT) "i"
#define FROM " FROM hx_batch b JOIN hx_subject s ON s.id = b.subject JOIN hx_account a ON a.subject = b.account"

DB_STMT(stmt_read, "batch_read", "it", OUT,
	"SELECT " COLUMNS_SQL FROM " WHERE b.subject = ?1 AND (?2 = '' OR b.workspace = ?2)");

DB_STMT(stmt_read_key, "batch_read_key", "tt", OUT,
	"SELECT " COLUMNS_SQL FROM " WHERE b.workspace = ?1 AND b.batch_key = ?2");

/* ?1 workspace   ?2 before   ?3 how many   then what is asked for. */
#define BY_ID "hx_batch", "b", LEAD_ALL, "?1", " AND b.expired = 0", ALL_DOWN
#define BY_WORKFLOW(n) "hx_batch", "b", LEAD_WORKFLOW, "?1, ?" n, " AND b.expired = 0", WORKFLOW_DOWN
#define LIST(...) "SELECT " COLUMNS_SQL FROM PAGE_DOWN(__VA_ARGS__)
#define LIST_STATUS(...) "SELECT " COLUMNS_SQL FROM STATUS_DOWN(__VA_ARGS__)
#define LIST_LINE(...) SLICE_LINE(LISTED_DOWN(__VA_ARGS__, ""), "min")

DB_STMT(stmt_list, "batch_list", "tii", OUT, LIST(BY_ID));
DB_STMT(stmt_list_workflow, "batch_list_workflow", "tiit", OUT, LIST(BY_WORKFLOW("4")));
DB_STMT(stmt_list_status, "batch_list_status", "tiit", OUT, LIST_STATUS(BY_ID));
DB_STMT(stmt_list_both, "batch_list_both", "tiitt", OUT, LIST_STATUS(BY_WORKFLOW("5")));
DB_STMT(stmt_list_these, "batch_list_these", "tt", OUT,
	"SELECT " COLUMNS_SQL FROM " WHERE b.subject IN (SELECT CAST(value AS bigint) FROM {list2}) AND b.workspace = ?1 AND b.expired = 0");
DB_STMT(stmt_slice, "batch_slice", "ti", "ii", LIST_LINE(BY_ID));
DB_STMT(stmt_slice_workflow, "batch_slice_workflow", "tit", "ii", LIST_LINE(BY_WORKFLOW("3")));

DUE_SOURCE_SHARED(batch_due_source, "batch", "subject, subject", "hx_batch", "", "{list2}", "", "", .name = "batches",
		  .topic = BATCH_TOPIC, .poll_ms = DUE_POLL_MS);

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

void batch_list_these(struct unit *unit, struct slice workspace, struct slice ids)
{
	UNIT_ADD(unit, UNIT_ANY, &stmt_list_these, db_text(workspace), db_text(ids));
}

void batch_list(struct unit *unit, const struct batch_filter *f)
{
	struct db_value in = db_text(f->workspace), before = db_int(f->before), limit = db_int(f->limit),
			status = db_text(f->status), workflow = db_text(f->workflow);

	if (f->status.n && f->workflow.n) {
		UNIT_ADD(unit, UNIT_ANY, &stmt_list_both, in, before, limit, status, workflow);
		UNIT_ADD(unit, UNIT_ANY, &stmt_slice_workflow, in, before, workflow);
	} else if (f->status.n) {
		UNIT_ADD(unit, UNIT_ANY, &stmt_list_status, in, before, limit, status);
		UNIT_ADD(unit, UNIT_ANY, &stmt_slice, in, before);
	} else if (f->workflow.n) {
		UNIT_ADD(unit, UNIT_ANY, &stmt_list_workflow, in, before, limit, workflow);
	} else {
		UNIT_ADD(unit, UNIT_ANY, &stmt_list, in, before, limit);
	}
}

/* ---- a batch as it was read ---- */

int64_t batch_pending(const struct batch_row *row)
{
	return row->total - row->succeeded - row->failed - row->unknown - row->running;
}

void batch_row_take(const struct db_rows *rows, size_t i, const struct batch_policy *policy, struct arena *arena,
		    struct batch_row *row)
{
	const struct db_value *cells = db_cell(rows, i, 0);

	*row = (struct batch_row){0};
	BATCH_FIELDS(COLUMN_TAKE);
	row->now = cells[BATCH_NOW].i;
	row->status = batch_status_of(cells[BATCH_STATUS].s);
	row->owned = cells[BATCH_OWNER].type != DB_NULL;
	subject_assert_valid(row->version, row->fence, &cells[BATCH_OWNER], &cells[BATCH_UNTIL]);
	ASSERT(row->status);
	if (policy)
		row->machine = policy->machine_of(policy->context, cells[BATCH_WORKFLOW].s, row->definition_version);
}

void batch_hold_of(const struct batch_row *row, const struct batch_policy *policy, struct arena *arena,
		   struct batch_hold *hold)
{
	char prefix[ID_TEXT_BYTES + 2];

	snprintf(prefix, sizeof prefix, "%c%s/", ACCOUNT_OWN_KEY, id_text("batch", row->subject).text);
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
		.data = row->data,
		.ledger_prefix = arena_copy(arena, slice_str(prefix)),
	};
	if (row->machine && row->machine->definition->lease_ms)
		hold->lease_ms = row->machine->definition->lease_ms;
}

void batch_hold_keep(struct batch_hold *hold, struct arena *arena)
{
	for (unsigned i = 0; i < batch_hold_shape.parts_n; i++) {
		struct slice *text = (struct slice *)((char *)hold + batch_hold_shape.parts[i].offset);

		if (text->p)
			*text = arena_copy(arena, *text);
	}
}
