/* History of a subject: entity:WORKFLOW:ID, or the id of a run, a batch, a job or a schedule. */
#include "api/api_history.h"
#include "api/api_list.h"
#include "base/id.h"
#include "flow/entity.h"

DB_STMT(stmt_of_entity, "history_of_entity", "tttii", HISTORY_OUT,
	HISTORY_COLUMNS "hx_entity e JOIN hx_history h ON h.subject = e.subject" HISTORY_NOTED
		" WHERE e.workspace = ?1 AND e.workflow = ?2 AND e.name = ?3 AND h.seq > ?4"
		" ORDER BY h.seq LIMIT ?5");

#define OF(table)                                                                                                      \
	HISTORY_COLUMNS table " t JOIN hx_history h ON h.subject = t.subject" HISTORY_NOTED                            \
			      " WHERE t.workspace = ?1 AND t.subject = ?2 AND h.seq > ?3 ORDER BY h.seq LIMIT ?4"

/* Retention has taken the history of what is expired, but for its head. */
#define EXPIRED(table) "SELECT subject FROM " table " WHERE workspace = ?1 AND subject = ?2 AND expired <> 0"

DB_STMT(stmt_of_job, "history_of_job", "tiii", HISTORY_OUT, OF("hx_job"));
DB_STMT(stmt_of_run, "history_of_run", "tiii", HISTORY_OUT, OF("hx_run"));
DB_STMT(stmt_of_batch, "history_of_batch", "tiii", HISTORY_OUT, OF("hx_batch"));
DB_STMT(stmt_of_schedule, "history_of_schedule", "tiii", HISTORY_OUT, OF("hx_schedule"));
DB_STMT(stmt_expired, "history_expired", "ti", "i", EXPIRED("hx_run"));
DB_STMT(stmt_expired_batch, "history_expired_batch", "ti", "i", EXPIRED("hx_batch"));

/* What has an id. */
static const struct kind {
	const char *prefix;
	const struct db_stmt *stmt, *expired; /* the latter NULL: it does not expire */
} kinds[] = {
	{"run", &stmt_of_run, &stmt_expired},
	{"batch", &stmt_of_batch, &stmt_expired_batch},
	{"job", &stmt_of_job, NULL},
	{"sched", &stmt_of_schedule, NULL},
};

static void build_by_id(const struct api_query *query, struct unit *unit)
{
	struct db_value workspace = db_text(api_workspace(query->call)), subject = db_int(query->subject);
	const struct kind *kind = query->of;

	UNIT_ADD(unit, UNIT_ANY, kind->stmt, workspace, subject, db_int(query->number), db_int(query->limit + 1));
	if (kind->expired)
		UNIT_ADD(unit, UNIT_ANY, kind->expired, workspace, subject);
}

static void build_of_entity(const struct api_query *query, struct unit *unit)
{
	const struct entity_machine *machine = api_machine_named(query->call, query->status_wanted);
	struct slice workspace = api_workspace(query->call);

	if (machine && machine->table)
		workspace = slice_str(""); /* the user's own table has no workspaces */
	UNIT_ADD(unit, UNIT_ANY, &stmt_of_entity, db_text(workspace), db_text(query->status_wanted),
		 db_text(query->name), db_int(query->number), db_int(query->limit + 1));
}

static void history_build(struct api_query *query, struct unit *unit)
{
	if (query->of)
		build_by_id(query, unit);
	else
		build_of_entity(query, unit);
}

enum { SEQ, FROM, TO, VERSION, FENCE, OP, NODE, AT, HASH, STEP, REQUESTER, REASON, BY, OUTPUT, WORKER };

const struct row_member api_history_members[] = {
	{"seq", ROW_INT, .at = SEQ},
	{"from", ROW_TEXT, .at = FROM},
	{"to", ROW_TEXT, .at = TO},
	{"version", ROW_INT, .at = VERSION},
	{"fence", ROW_INT, .at = FENCE},
	{"op", ROW_ID, .at = OP, .prefix = "op"},
	{"node", ROW_TEXT, .at = NODE},
	{"time", ROW_TIME, .at = AT},
	{"hash", ROW_SHA256, .at = HASH},
	{"step", ROW_TEXT, .at = STEP},
	{"requester", ROW_TEXT, .at = REQUESTER},
	{"reason", ROW_TEXT, .at = REASON},
	{"by", ROW_TEXT, .at = BY},
	{"output", ROW_JSON, .at = OUTPUT},
	{"worker", ROW_TEXT, .at = WORKER},
	{.name = NULL},
};

/* A workflow may have gone and left its histories: its name is looked at when there is none. */
static const char *nothing_words(struct api_query *query)
{
	if (!query->of && !api_machine_named(query->call, query->status_wanted))
		return api_no_workflow_words(query->call, query->status_wanted, "entity");
	return "there is no such subject";
}

static enum hx_code history_check(struct api_query *query, const struct unit_result *result)
{
	const struct kind *kind = query->of;

	if (kind && kind->expired && result->rows[1].n)
		return HX_RUN_EXPIRED;
	if (result->rows[0].n || query->number)
		return HX_OK;
	query->detail = nothing_words(query);
	return HX_NOT_FOUND;
}

const char api_no_subject[] = "a subject is entity:WORKFLOW:ID or the id of a run, a batch, a job or a schedule";

/* entity:WORKFLOW:ID; the id may hold colons itself. */
bool api_entity_split(struct slice subject, struct slice *ret_workflow, struct slice *ret_name)
{
	static const char prefix[] = "entity:";
	size_t skip = sizeof prefix - 1;
	const char *colon;

	if (subject.n <= skip || memcmp(subject.p, prefix, skip) != 0)
		return false;
	colon = memchr(subject.p + skip, ':', subject.n - skip);
	if (!colon)
		return false;
	*ret_workflow = slice_of(subject.p + skip, (size_t)(colon - subject.p) - skip);
	*ret_name = slice_of(colon + 1, subject.n - (size_t)(colon + 1 - subject.p));
	return true;
}

static const struct kind *kind_of(struct slice id, int64_t *ret_subject)
{
	for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
		if (id_parse(kinds[i].prefix, id, ret_subject))
			return &kinds[i];
	return NULL;
}

void api_history(struct http_call *call)
{
	static const struct api_list list = {
		.build = history_build,
		.cursor = CURSOR_NUMBER,
		.column = SEQ,
		.check = history_check,
		.members = api_history_members,
	};
	struct slice text = call->params[0];
	struct api_query *query = api_list_new(call, &list);

	if (!query)
		return;
	query->of = kind_of(text, &query->subject);
	if (query->of || api_entity_split(text, &query->status_wanted, &query->name))
		api_query_read(query);
	else
		api_refuse(call, HX_NOT_FOUND, api_no_subject);
}
