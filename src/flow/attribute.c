/* See attribute.h. */
#include "flow/attribute.h"

#include "flow/batch.h"
#include "flow/run.h"

/* clang-format off */

#define INTO "INSERT INTO hx_attribute (subject, name, workspace, kind, value)"
#define PAIRS " json_each(r.attributes) a"
#define PAIRS_PG " LATERAL jsonb_each_text(r.attributes::jsonb) a"

#define OF(name, table)                                                                                                \
	DB_STMT(name, "attributes_of_" table, "ii", "",                                                                       \
		INTO " SELECT r.subject, a.key, r.workspace, ?2, a.value FROM hx_" table " r," PAIRS " WHERE r.subject = ?1",  \
		.pg_sql = INTO " SELECT r.subject, a.key, r.workspace, ?2, a.value FROM hx_" table " r{join}," PAIRS_PG       \
			       " WHERE r.subject = ?1")

OF(stmt_of_run, "run");
OF(stmt_of_entity, "entity");
OF(stmt_of_batch, "batch");

DB_STMT(stmt_of_children, "attributes_of_children", "itii", "",
	INTO " SELECT r.subject, a.key, r.workspace, ?4, a.value FROM hx_run r," PAIRS
	" WHERE r.parent = ?1 AND r.parent_step = ?2 AND r.parent_n >= ?3 AND r.attributes IS NOT NULL",
	.pg_sql = INTO " SELECT r.subject, a.key, r.workspace, ?4, a.value FROM hx_run r," PAIRS_PG
	          " WHERE r.parent = ?1 AND r.parent_step = ?2 AND r.parent_n >= ?3 AND r.attributes IS NOT NULL");

DB_STMT(stmt_set_entity, "attributes_set_entity", "it", "", "UPDATE hx_entity SET attributes = ?2{from} WHERE subject = ?1");

/* Those that have no subject yet. */
#define NEW_KIDS " WHERE r.parent = ?1 AND r.child = 'open' AND r.attributes IS NOT NULL"                               \
	" AND NOT EXISTS (SELECT 1 FROM hx_subject y WHERE y.id = r.subject)"
DB_STMT(stmt_of_new_children, "attributes_of_new_children", "ii", "",
	INTO " SELECT r.subject, a.key, r.workspace, ?2, a.value FROM hx_run r," PAIRS NEW_KIDS,
	.pg_sql = INTO " SELECT r.subject, a.key, r.workspace, ?2, a.value FROM hx_run r," PAIRS_PG NEW_KIDS);

DB_STMT(stmt_set, "attributes_set", "it", "", "UPDATE hx_run SET attributes = ?2{from} WHERE subject = ?1");

DB_STMT_DROP(stmt_drop, "attributes_drop", "hx_attribute", "subject");

/* clang-format on */

void attributes_of_run(struct unit *unit, int64_t subject)
{
	UNIT_ADD(unit, UNIT_ANY, &stmt_of_run, db_int(subject), db_int(run_kind()));
}

void attributes_of_children(struct unit *unit, int64_t parent, const char *step, int64_t from)
{
	UNIT_ADD(unit, UNIT_ANY, &stmt_of_children, db_int(parent), db_str(step), db_int(from), db_int(run_kind()));
}

void attributes_of_new_children(struct unit *unit, int64_t parent)
{
	UNIT_ADD(unit, UNIT_ANY, &stmt_of_new_children, db_int(parent), db_int(run_kind()));
}

void attributes_drop(struct unit *unit, int64_t subject)
{
	UNIT_ADD(unit, UNIT_ANY, &stmt_drop, db_int(subject));
}

void attributes_of_run_set(struct unit *unit, int64_t subject, struct slice attributes)
{
	UNIT_ADD(unit, UNIT_ANY, &stmt_set, db_int(subject), attributes.n ? db_text(attributes) : db_null());
	attributes_drop(unit, subject); /* mutant: attribute-stays */
	if (attributes.n)
		attributes_of_run(unit, subject); /* mutant: attribute-not-indexed -> ; */
}

void attributes_of_batch(struct unit *unit, int64_t subject)
{
	UNIT_ADD(unit, UNIT_ANY, &stmt_of_batch, db_int(subject), db_int(batch_kind()));
}

void attributes_of_entity(struct unit *unit, int64_t subject, int64_t kind)
{
	UNIT_ADD(unit, UNIT_ANY, &stmt_of_entity, db_int(subject), db_int(kind));
}

void attributes_of_entity_set(struct unit *unit, int64_t subject, int64_t kind, struct slice attributes)
{
	UNIT_ADD(unit, UNIT_ANY, &stmt_set_entity, db_int(subject), attributes.n ? db_text(attributes) : db_null());
	attributes_drop(unit, subject); /* mutant: entity-attribute-stays */
	if (attributes.n)
		attributes_of_entity(unit, subject, kind); /* mutant: entity-attribute-not-indexed -> ; */
}
