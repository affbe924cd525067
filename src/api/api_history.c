/* History of a subject: entity:WORKFLOW:ID, or the id of a run, a batch or a job. */
#include "api/api.h"
#include "base/hash.h"
#include "base/id.h"
#include "base/json_string.h"
#include "flow/entity.h"

enum { SEQ, FROM, TO, VERSION, FENCE, OP, NODE, AT, HASH };

static const struct db_stmt stmt_of_entity = {
	.name = "history_of_entity",
	.sql = "SELECT h.seq, h.from_status, h.to_status, h.version, h.fence, h.op, h.node, h.at, h.hash"
	       " FROM hx_entity e JOIN hx_history h ON h.subject = e.subject"
	       " WHERE e.workspace = ?1 AND e.workflow = ?2 AND e.name = ?3 AND h.seq > ?4 ORDER BY h.seq LIMIT ?5",
	.in = "tttii",
	.out = "ittiiitib",
};

#define OF(table)                                                                                                      \
	"SELECT h.seq, h.from_status, h.to_status, h.version, h.fence, h.op, h.node, h.at, h.hash"                     \
	" FROM " table " t JOIN hx_history h ON h.subject = t.subject"                                                 \
	" WHERE t.workspace = ?1 AND t.subject = ?2 AND h.seq > ?3 ORDER BY h.seq LIMIT ?4"

/* Retention has taken the history of what is expired, but for its head. */
#define EXPIRED(table) "SELECT subject FROM " table " WHERE workspace = ?1 AND subject = ?2 AND expired <> 0"

static const struct db_stmt stmt_of_job = {
	.name = "history_of_job", .sql = OF("hx_job"), .in = "tiii", .out = "ittiiitib"};
static const struct db_stmt stmt_of_run = {
	.name = "history_of_run", .sql = OF("hx_run"), .in = "tiii", .out = "ittiiitib"};
static const struct db_stmt stmt_of_batch = {
	.name = "history_of_batch", .sql = OF("hx_batch"), .in = "tiii", .out = "ittiiitib"};
static const struct db_stmt stmt_expired = {
	.name = "history_expired", .sql = EXPIRED("hx_run"), .in = "ti", .out = "i"};
static const struct db_stmt stmt_expired_batch = {
	.name = "history_expired_batch", .sql = EXPIRED("hx_batch"), .in = "ti", .out = "i"};

static void add_lines(const struct api_query *query, const struct db_stmt *of, const struct db_stmt *expired,
		      struct unit *unit)
{
	struct db_value workspace = db_text(api_workspace(query->call)), subject = db_int(query->subject);

	UNIT_ADD(unit, UNIT_ANY, of, workspace, subject, db_int(query->number), db_int(query->limit + 1));
	if (expired)
		UNIT_ADD(unit, UNIT_ANY, expired, workspace, subject);
}

static void build_job(const struct single *single, struct unit *unit)
{
	add_lines(single->context, &stmt_of_job, /* expired= */ NULL, unit);
}

static void build_run(const struct single *single, struct unit *unit)
{
	add_lines(single->context, &stmt_of_run, &stmt_expired, unit);
}

static void build_batch(const struct single *single, struct unit *unit)
{
	add_lines(single->context, &stmt_of_batch, &stmt_expired_batch, unit);
}

static void build_entity(const struct single *single, struct unit *unit)
{
	const struct api_query *query = single->context;
	const struct entity_machine *machine = api_machine_named(query->call, query->status_wanted);
	struct slice workspace = api_workspace(query->call);

	if (machine && machine->table)
		workspace = slice_str(""); /* the user's own table has no workspaces */
	UNIT_ADD(unit, UNIT_ANY, &stmt_of_entity, db_text(workspace), db_text(query->status_wanted),
		 db_text(query->name), db_int(query->number), db_int(query->limit + 1));
}

static void add_row(struct strbuf *text, const struct db_rows *rows, size_t i)
{
	char op[ID_TEXT_BYTES], hash[2 * SHA256_BYTES + 1];

	id_format("op", db_cell(rows, i, OP)->i, op);
	sha256_hex((const uint8_t *)db_cell(rows, i, HASH)->s.p, hash);
	strbuf_addf(text, "%s{\"seq\":%lld,\"from\":", i ? "," : "", (long long)db_cell(rows, i, SEQ)->i);
	json_quote(db_cell(rows, i, FROM)->s, text);
	strbuf_add_str(text, ",\"to\":");
	json_quote(db_cell(rows, i, TO)->s, text);
	strbuf_addf(text,
		    ",\"version\":%lld,\"fence\":%lld,\"op\":\"%s\",\"node\":", (long long)db_cell(rows, i, VERSION)->i,
		    (long long)db_cell(rows, i, FENCE)->i, op);
	json_quote(db_cell(rows, i, NODE)->s, text);
	strbuf_add_char(text, ',');
	api_add_time(text, "time", db_cell(rows, i, AT)->i);
	strbuf_addf(text, ",\"hash\":\"%s\"}", hash);
}

/* A workflow may have gone and left its histories: its name is looked at when there is none. */
static const char *nothing_words(struct api_query *query)
{
	if (query->build == build_entity && !api_machine_named(query->call, query->status_wanted))
		return api_no_workflow_words(query->call, query->status_wanted, "entity");
	return "there is no such subject";
}

static enum hx_code answered(struct single *single, const struct unit_result *result)
{
	struct api_query *query = single->context;
	const struct db_rows *rows = &result->rows[0];
	size_t n = rows->n > (size_t)query->limit ? (size_t)query->limit : rows->n;

	if ((query->build == build_run || query->build == build_batch) && result->rows[1].n)
		return HX_RUN_EXPIRED;
	if (rows->n == 0 && query->number == 0) {
		query->detail = nothing_words(query);
		return HX_NOT_FOUND;
	}
	strbuf_add_str(&query->text, "{\"items\":[");
	for (size_t i = 0; i < n; i++)
		add_row(&query->text, rows, i);
	api_end_page(&query->text, rows->n > n ? db_cell(rows, n - 1, SEQ) : NULL);
	return HX_OK;
}

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

void api_history(struct http_call *call)
{
	struct slice text = call_param(call, "subject"), workflow = {NULL, 0}, name = {NULL, 0};
	void (*build)(const struct single *, struct unit *);
	int64_t limit, after, subject = 0;
	struct api_query *query;

	if (!api_query_number(call, "limit", API_PAGE_DEFAULT, API_PAGE_MAX, &limit) ||
	    !api_query_number(call, "cursor", 0, INT64_MAX, &after))
		return;
	build = id_parse("run", text, &subject)            ? build_run
		: id_parse("batch", text, &subject)        ? build_batch
		: id_parse("job", text, &subject)          ? build_job
		: api_entity_split(text, &workflow, &name) ? build_entity
							   : NULL;
	if (!build) {
		http_respond_code(call->exchange, HX_NOT_FOUND,
				  "a subject is entity:WORKFLOW:ID or the id of a run, a batch or a job");
		return;
	}
	query = api_query_new(call, build, answered);
	if (!query)
		return;
	query->limit = limit;
	query->number = after;
	query->subject = subject;
	query->status_wanted = workflow;
	query->name = name;
	api_query_read(query);
}
