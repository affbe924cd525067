/* Statements of the entity table. See entity.h. */
#include "flow/entity.h"

#include "base/hash.h"
#include "base/utf8.h"
#include "flow/attribute.h"
#include "flow/page.h"
#include "flow/subject_change.h"

#define ENTITY_FIELDS                                                                                                  \
	"SELECT e.subject, s.status, s.version, s.fence, s.effort, s.owner, s.until, s.updated_at, e.data,"            \
	" e.name, e.workspace, s.doubt, e.attributes,"                                                                 \
	" e.claim_step, e.claim_from, e.claim_requester, e.claim_input, e.claim_effort, e.claim_address, e.claim_version"
#define ENTITY_FROM " FROM hx_entity e JOIN hx_subject s ON s.id = e.subject"
#define ENTITY_SELECT ENTITY_FIELDS ENTITY_FROM
#define ENTITY_SELECT_KEPT(step) ENTITY_FIELDS ", " KEPT_CALL_COLUMNS ENTITY_FROM KEPT_CALL_JOIN(step)

DB_STMT(stmt_create, "entity_create", "ittttt", "",
	"INSERT INTO hx_entity (subject, workspace, workflow, name, data, attributes) VALUES (?1, ?2, ?3, ?4, ?5, ?6)"
	" ON CONFLICT (workspace, workflow, name) DO NOTHING" /* mutant: create-taken -> " ON CONFLICT (workspace, workflow, name) DO UPDATE SET data = excluded.data" */
);

DB_STMT(stmt_read, "entity_read", "tttt", ENTITY_OUT,
	ENTITY_SELECT_KEPT("?4") " WHERE e.workspace = ?1 AND e.workflow = ?2 AND e.name = ?3" KEPT_CALL_ORDER);

DB_STMT(stmt_read_bare, "entity_read_bare", "ttt", ENTITY_LIST_OUT,
	ENTITY_SELECT " WHERE e.workspace = ?1 AND e.workflow = ?2 AND e.name = ?3");

DB_STMT(stmt_read_subject, "entity_read_subject", "i", ENTITY_OUT,
	ENTITY_SELECT_KEPT("coalesce(e.claim_step, '')") " WHERE e.subject = ?1" KEPT_CALL_ORDER);

#define LIST_WHERE " WHERE e.workspace = ?1 AND e.workflow = ?2 AND e.name > ?3"
#define LIST_OF "(SELECT e.name AS subject FROM hx_entity e" LIST_WHERE " ORDER BY e.name LIMIT " LIST_SLICE_SQL ")"

DB_STMT(stmt_list, "entity_list", "ttti", ENTITY_LIST_OUT, ENTITY_SELECT LIST_WHERE " ORDER BY e.name LIMIT ?4");

DB_STMT(stmt_list_status, "entity_list_status", "tttiti", ENTITY_LIST_OUT,
	ENTITY_SELECT LIST_WHERE " AND e.name <= " LISTED_END(LIST_OF, "max")
	" AND (?5 = '' OR s.status = ?5) AND (?6 = 0 OR s.owner = 'held') ORDER BY e.name LIMIT ?4");

DB_STMT(stmt_slice, "entity_slice", "ttt", "it", SLICE_LINE(LIST_OF, "max"));

DB_STMT(stmt_list_these, "entity_list_these", "tt", ENTITY_LIST_OUT,
	ENTITY_SELECT " WHERE e.subject IN (SELECT CAST(value AS bigint) FROM {list2}) AND e.workspace = ?1");

/* As subject_claim(), for a call. */
DB_STMT(stmt_claim, "subject_claim_for_call", "ttiiitiiiti", "ii",
	CHANGE_FORMS(CHANGE("fence + 1")
		     ", owner = ?6, fence = fence + 1, until = hx_now_ms() + ?8"
		     "{from} WHERE id = ?7"
		     " AND status = ?2" /* mutant: entity-claim-status */
		     " AND version = ?3" /* mutant: entity-claim-version */
		     ENTITY_SAME_EFFORT /* mutant: entity-claim-effort -> " AND ?9 >= 0" */
		     ENTITY_NO_OTHER_CALL, /* mutant: claim-over-call -> " AND ?10 <> '' AND ?11 >= 0", */
		     "version, fence"));

DB_STMT(stmt_change, "entity_change", "ttiiiti", "ii",
	CHANGE_FORMS(CHANGE("fence")
		     "{from} WHERE id = ?7"
		     " AND status = ?2"
		     " AND version = ?3" /* mutant: data-version -> " AND ?3 >= 0" */
		     " AND owner IS NULL" /* mutant: data-claimed */
		     " AND doubt = 0" /* mutant: data-in-doubt */
		     " AND NOT EXISTS (SELECT 1 FROM hx_kept_call k WHERE k.subject = ?7 AND k.effort = hx_subject.effort)", /* mutant: data-over-call -> , */
		     "version, fence"));

DB_STMT(stmt_save, "entity_save", "it", "", "UPDATE hx_entity SET data = ?2{from} WHERE subject = ?1");

DB_STMT(stmt_note_claim, "entity_note_claim", "ittttiti", "",
	"UPDATE hx_entity SET claim_step = ?2, claim_from = ?5, claim_requester = ?3, claim_input = ?4, claim_effort = ?6,"
	" claim_address = ?7, claim_version = ?8{from} WHERE subject = ?1");

bool entity_name_is_good(struct slice name)
{
	for (size_t i = 0; i < name.n; i++)
		if ((unsigned char)name.p[i] < 0x20 || name.p[i] == 0x7f)
			return false;
	return name.n >= 1 && name.n <= ENTITY_NAME_MAX && utf8_valid_bytes(name) == name.n;
}

uint64_t entity_hash(struct slice workspace, const char *workflow, struct slice name)
{
	uint64_t hash = hash_bytes(1, workspace.p, workspace.n);

	hash = hash_bytes(hash, workflow, strlen(workflow));
	return hash_bytes(hash, name.p, name.n);
}

/* ---- the machine ---- */

int64_t entity_kind(struct slice workflow)
{
	char name[WORKFLOW_NAME_MAX + 1];

	snprintf(name, sizeof name, "%.*s", SLICE_ARGS(workflow)); /* a longer one is none's */
	return subject_kind("entity:", name);
}

const struct entity_machine *entity_machine_new(const struct workflow *workflow, int64_t version,
						const struct entity_table *table, struct arena *arena)
{
	struct entity_machine *machine = arena_zalloc(arena, sizeof *machine);
	struct sql_action *sql = sql_actions_new(workflow->actions, workflow->actions_n, arena);

	if (!machine || !sql)
		return NULL;
	*machine = (struct entity_machine){workflow, version, entity_kind(slice_str(workflow->name)), sql, table};
	return machine;
}

/* ---- units ---- */

struct slice entity_describe(const struct entity_machine *machine, struct slice data, struct arena *arena)
{
	return attributes_of_data(&machine->workflow->attributes, data, arena);
}

void entity_create(struct unit *unit, const struct stamp *stamp, const struct entity_ref *ref, int64_t subject,
		   struct slice data, struct slice attributes)
{
	const struct workflow *workflow = ref->machine->workflow;

	UNIT_ADD(unit, UNIT_VERDICT, &stmt_create, db_int(subject), db_text(ref->workspace), db_str(workflow->name),
		 db_text(ref->name), db_text(data), db_optional(attributes));
	subject_insert(unit, stamp, subject, ref->machine->kind, workflow->initial_status);
	if (attributes.p)
		attributes_of_entity(unit, subject, ref->machine->kind); /* mutant: entity-without-its-index -> ; */
}

void entity_save(struct unit *unit, int64_t subject, struct slice data)
{
	UNIT_ADD(unit, UNIT_ANY, &stmt_save, db_int(subject), db_text(data));
}

void entity_change(struct unit *unit, const struct stamp *stamp, int64_t subject, const char *status, int64_t version,
		   struct slice data)
{
	unit_touch(unit, subject);
	UNIT_ADD(unit, UNIT_VERDICT, &stmt_change, db_str(status), db_str(status), db_int(version), db_int(stamp->op),
		 db_int(stamp->at.ms), db_str(stamp->node), db_int(subject));
	subject_add_history(unit, stamp, subject, status);
	unit_wake(unit, subject);
	entity_save(unit, subject, data);
}

void entity_adopt(struct unit *unit, const struct stamp *stamp, const struct entity_ref *ref, struct slice name,
		  int64_t subject, const char *status)
{
	UNIT_ADD(unit, UNIT_VERDICT, &stmt_create, db_int(subject), db_str(""), db_str(ref->machine->workflow->name),
		 db_text(name), db_str("{}"), db_null());
	subject_insert(unit, stamp, subject, ref->machine->kind, status);
}

void entity_read(struct unit *unit, const struct entity_ref *ref, struct slice step)
{
	if (ref->machine->table) {
		unit_limit(unit, ENTITY_TABLE_LIMIT_MS); /* it may be locked as a whole */
		UNIT_ADD(unit, UNIT_ANY, &ref->machine->table->read, db_str(ref->machine->workflow->name),
			 db_text(ref->name), db_text(step));
		return;
	}
	UNIT_ADD(unit, UNIT_ANY, &stmt_read, db_text(ref->workspace), db_str(ref->machine->workflow->name),
		 db_text(ref->name), db_text(step));
}

void entity_read_bare(struct unit *unit, const struct entity_ref *ref)
{
	UNIT_ADD(unit, UNIT_ANY, &stmt_read_bare, db_text(ref->workspace), db_str(ref->machine->workflow->name),
		 db_text(ref->name));
}

void entity_assert_valid(const struct entity_machine *machine, const struct db_rows *rows)
{
	if (!machine->table) /* where the version is the user's own */
		subject_assert_valid(db_cell(rows, 0, ENTITY_VERSION)->i, db_cell(rows, 0, ENTITY_FENCE)->i,
				     db_cell(rows, 0, ENTITY_OWNER), db_cell(rows, 0, ENTITY_UNTIL));
}

void entity_read_subject(struct unit *unit, int64_t subject)
{
	UNIT_ADD(unit, UNIT_ANY, &stmt_read_subject, db_int(subject));
}

static void list_by_status(struct unit *unit, const struct entity_ref *ref, struct slice status, bool held,
			   struct slice after, int64_t limit)
{
	struct db_value in = db_text(ref->workspace), of = db_str(ref->machine->workflow->name), from = db_text(after);

	UNIT_ADD(unit, UNIT_ANY, &stmt_list_status, in, of, from, db_int(limit), db_text(status), db_int(held));
	UNIT_ADD(unit, UNIT_ANY, &stmt_slice, in, of, from);
}

void entity_list(struct unit *unit, const struct entity_ref *ref, struct slice status, bool held, struct slice after,
		 int64_t limit)
{
	const struct entity_table *table = ref->machine->table;
	struct db_value workflow = db_str(ref->machine->workflow->name);

	if (table)
		unit_limit(unit, ENTITY_TABLE_LIMIT_MS);
	if (table && after.n)
		UNIT_ADD(unit, UNIT_ANY, &table->list_after, workflow, db_text(status), db_int(held), db_int(limit),
			 db_text(after));
	else if (table)
		UNIT_ADD(unit, UNIT_ANY, &table->list, workflow, db_text(status), db_int(held), db_int(limit));
	else if (status.n || held)
		list_by_status(unit, ref, status, held, after, limit);
	else
		UNIT_ADD(unit, UNIT_ANY, &stmt_list, db_text(ref->workspace), workflow, db_text(after), db_int(limit));
}

void entity_list_these(struct unit *unit, struct slice workspace, struct slice subjects)
{
	UNIT_ADD(unit, UNIT_ANY, &stmt_list_these, db_text(workspace), db_text(subjects));
}

void entity_claim(struct unit *unit, const struct stamp *stamp, const struct move *move, int64_t version,
		  int64_t lease_ms, const struct entity_sent *call)
{
	unit_touch(unit, move->subject);
	UNIT_ADD(unit, UNIT_VERDICT, &stmt_claim, db_str(move->to), db_str(move->from), db_int(version),
		 db_int(stamp->op), db_int(stamp->at.ms), db_str(stamp->node), db_int(move->subject), db_int(lease_ms),
		 ENTITY_CALL_VALUES(call));
	subject_add_history(unit, stamp, move->subject, move->from);
	unit_wake(unit, move->subject);
}

void entity_note_claim(struct unit *unit, int64_t subject, const char *from, const struct entity_sent *call)
{
	if (call->kept)
		kept_call_again(unit, KEPT_BY_CLAIM, subject, call); /* mutant: claim-over-answered -> ; */
	UNIT_ADD(unit, UNIT_ANY, &stmt_note_claim, db_int(subject), db_text(call->step), db_text(call->claimant),
		 db_text(call->input), db_str(from), db_int(call->effort), db_text(call->address),
		 db_int(call->version));
}
