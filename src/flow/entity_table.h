/*
 * Entities that live in the user's own table: status, version and updated_at are columns there, claim and history stay
 * with us, in a shadow subject that is made when the engine first meets the row.
 *
 * The truth about status and version is the user's row; every write is guarded by both there, and every other writer
 * must raise the version too. The truth about the claim is the shadow. A unit changes both or neither:
 *
 *   transition   VERDICT user's row (status, version)          then the shadow, which follows
 *   claim        VERDICT user's row (status, version)   VERDICT shadow (effort, no other call): owner, fence+1, until
 *   finish       VERDICT shadow (fence)   VERDICT user's row (claim status; its version may have been raised meanwhile)
 *   release      the same, back to revert_to
 *   revert       VERDICT shadow (fence, until past)   then the user's row, unless somebody has changed it meanwhile
 *
 * Names are the user's: quoted always, and checked against the live schema before anything is served.
 */
#pragma once

#include "flow/entity_call.h"
#include "flow/subject.h"
#include "model/workflow.h"

/* How long a unit may wait for a row of the user's that somebody has locked. */
#define ENTITY_TABLE_LIMIT_MS 8000

/* How updated_at is written, by the type of its column. */
enum table_time { TABLE_TIME_MS, TABLE_TIME_TEXT, TABLE_TIME_TIMESTAMP };

struct entity_table {
	/* Rows of entity.h's columns; the shadow's are NULL while there is none. */
	struct db_stmt read;       /* workflow, id */
	struct db_stmt list;       /* workflow, status, held, limit */
	struct db_stmt list_after; /* the same, and the id after which it goes on */
	/* The guarded write of the user's row: to, from, version, time, id. */
	struct db_stmt transition;
	struct db_stmt leave; /* the same out of a claim: the version is not looked at */
	enum table_time time;
};

/* The statement that asks for the columns of the table. Row: name, type. */
void entity_table_ask_columns(struct unit *unit, const struct workflow *workflow);
/*
 * Makes the statements for a table with these columns. What is missing or has a type that cannot serve is told in
 * findings, with the file of the definition; NULL then, and when the arena is full.
 */
const struct entity_table *entity_table_new(const struct workflow *workflow, const struct db_rows *columns,
					    bool postgres, struct arena *arena, struct findings *findings);

/* What a unit needs to know of the row. */
struct table_row {
	const struct entity_table *table;
	struct slice id;
	int64_t version;        /* of the user's row, as it was read or as the claim left it */
	struct slice time_text; /* RFC 3339, where the column is text */
};

/* Row of line 1: version reached, fence, effort. */
void entity_table_transition(struct unit *unit, const struct stamp *stamp, const struct table_row *row,
			     const struct move *move);
/* Row of line 1: version reached, fence, effort. LOST: as entity_claim() (entity.h). */
void entity_table_claim(struct unit *unit, const struct stamp *stamp, const struct table_row *row,
			const struct move *move, int64_t lease_ms, const struct entity_sent *call);
/* Row of line 0: the shadow; of line 2: the version that the user's row reached. */
void entity_table_finish(struct unit *unit, const struct stamp *stamp, const struct table_row *row,
			 const struct move *move, int64_t fence);
void entity_table_release(struct unit *unit, const struct stamp *stamp, const struct table_row *row,
			  const struct move *move, int64_t fence, bool answered);
void entity_table_revert(struct unit *unit, const struct stamp *stamp, const struct table_row *row,
			 const struct move *move, int64_t fence);

/* How many rows are in each of some statuses: ?1 these, a JSON array, ?2 how many rows at most. Rows: status, count. */
void entity_table_count_sql(const struct user_table *table, bool postgres, struct strbuf *out);
