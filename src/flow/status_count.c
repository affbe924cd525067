/* See status_count.h. */
#include "flow/status_count.h"

#include "flow/page.h"

/* clang-format off */

#define LEAD_QUEUE(a) a ".workspace, " a ".queue"
#define QUEUE_DOWN(a) a ".workspace DESC, " a ".queue DESC, " a ".subject DESC"
#define NEWEST(table, lead, is, base, order) SLICE_DOWN(table, "t", lead, is, "9223372036854775807", base, order, LIST_COUNTED_SQL, "")

#define EXPIRED_NOT " AND t.expired = 0"
DB_STMT(stmt_batches, "count_batches", "t", "tii", SLICE_COUNTS(NEWEST("hx_batch", LEAD_ALL, "?1", EXPIRED_NOT, ALL_DOWN)));
DB_STMT(stmt_batches_of, "count_batches_of", "tt", "tii",
	SLICE_COUNTS(NEWEST("hx_batch", LEAD_WORKFLOW, "?1, ?2", EXPIRED_NOT, WORKFLOW_DOWN)));
DB_STMT(stmt_entities, "count_entities", "tt", "tii", SLICE_COUNTS(NEWEST("hx_entity", LEAD_WORKFLOW, "?1, ?2", "", WORKFLOW_DOWN)));

/* Those that have an index of their own are left out of the newest, and counted there. */
#define OWN(status, base)                                                                                              \
	" UNION ALL SELECT '" status "', count(*), count(*) FROM " NEWEST("hx_job", LEAD_ALL, "?1", base, ALL_DOWN) " AS slice"
#define JOBS(newest, of)                                                                                               \
	SLICE_COUNTS(newest) " WHERE c.status NOT IN ('PARKED', 'RETRYING')"                                           \
	OWN("PARKED", " AND t.ended_at IS NOT NULL AND t.error IS NOT NULL" of)                                        \
	OWN("RETRYING", " AND t.due_at IS NOT NULL AND t.error IS NOT NULL" of)
DB_STMT(stmt_jobs, "count_jobs", "t", "tii", JOBS(NEWEST("hx_job", LEAD_ALL, "?1", "", ALL_DOWN), ""));
DB_STMT(stmt_jobs_of, "count_jobs_of", "tt", "tii",
	JOBS(NEWEST("hx_job", LEAD_QUEUE, "?1, ?2", "", QUEUE_DOWN), " AND t.queue = ?2"));

/* clang-format on */

void status_count(struct unit *unit, enum counted noun, struct slice workspace, struct slice name)
{
	static const struct {
		const struct db_stmt *all, *of;
	} stmts[] = {
		[COUNTED_JOBS] = {&stmt_jobs, &stmt_jobs_of},
		[COUNTED_BATCHES] = {&stmt_batches, &stmt_batches_of},
		[COUNTED_ENTITIES] = {NULL, &stmt_entities},
	};

	if (name.n || !stmts[noun].all)
		UNIT_ADD(unit, UNIT_ANY, stmts[noun].of, db_text(workspace), db_text(name));
	else
		UNIT_ADD(unit, UNIT_ANY, stmts[noun].all, db_text(workspace));
}
