/*
 * The evidence of a subject: all of its history, its ledger, their hashes and the version of its definition, in one document that
 * `hapax audit --bundle` checks without this store (flow/evidence.h has the format).
 *
 * One unit reads all of it, so it is of one moment: the head is that of the last row. What is too long for one document is
 * refused, and not cut: half a history proves nothing.
 */
#include <stdio.h>

#include "api/api.h"
#include "api/api_history.h"
#include "flow/account.h"
#include "flow/entity.h"
#include "flow/evidence.h"

#define SCANNED_MAX 200000 /* entries of an account that are looked through for those of a batch */

/* clang-format off */

#define NOTHING "CAST('' AS text)"
#define ZERO "CAST(0 AS bigint)"
#define SUBJECT(more) "SELECT s.id, s.status, s.version, s.fence, s.op, s.updated_at, s.seq, s.head, " more " FROM "
#define SUBJECT_OUT "itiiiiib" "itiiii"
enum {
	ID, STATUS, VERSION, FENCE, OP, AT, SEQ, HEAD,
	EXPIRED, ACCOUNT, BALANCE, CHARGED, REFUNDED, ENTRIES
};
#define JOINED " t JOIN hx_subject s ON s.id = t.subject"
#define BY_ID " WHERE t.workspace = ?1 AND t.subject = ?2"
#define NO_MONEY NOTHING ", " ZERO ", " ZERO ", " ZERO ", " ZERO

DB_STMT(stmt_run, "evidence_run", "ti", SUBJECT_OUT, SUBJECT("t.expired, " NO_MONEY) "hx_run" JOINED BY_ID);
DB_STMT(stmt_job, "evidence_job", "ti", SUBJECT_OUT, SUBJECT(ZERO ", " NO_MONEY) "hx_job" JOINED BY_ID);
DB_STMT(stmt_schedule, "evidence_schedule", "ti", SUBJECT_OUT, SUBJECT(ZERO ", " NO_MONEY) "hx_schedule" JOINED BY_ID);
DB_STMT(stmt_batch, "evidence_batch", "ti", SUBJECT_OUT,
	SUBJECT("t.expired, a.name, a.balance, t.charged, t.refunded, a.seq") "hx_batch" JOINED
	" JOIN hx_account a ON a.subject = t.account" BY_ID);
DB_STMT(stmt_entity, "evidence_entity", "ttt", SUBJECT_OUT,
	SUBJECT(ZERO ", " NO_MONEY) "hx_entity" JOINED " WHERE t.workspace = ?1 AND t.workflow = ?2 AND t.name = ?3");
DB_STMT(stmt_account, "evidence_account", "tt", SUBJECT_OUT,
	SUBJECT(ZERO ", t.name, t.balance, " ZERO ", " ZERO ", t.seq") "hx_account" JOINED " WHERE t.workspace = ?1 AND t.name = ?2");

/* Whose it is, is asked by the line above: without its row nothing of this is shown. */
#define ROWS_OF(subject, limit) HISTORY_COLUMNS "hx_history h" HISTORY_NOTED " WHERE h.subject = " subject " ORDER BY h.seq LIMIT " limit
DB_STMT(stmt_rows, "evidence_rows", "ii", HISTORY_OUT, ROWS_OF("?1", "?2"));
DB_STMT(stmt_rows_of_entity, "evidence_rows_of_entity", "ttti", HISTORY_OUT,
	ROWS_OF("(SELECT subject FROM hx_entity WHERE workspace = ?1 AND workflow = ?2 AND name = ?3)", "?4"));
DB_STMT(stmt_rows_of_account, "evidence_rows_of_account", "tti", HISTORY_OUT,
	ROWS_OF("(SELECT subject FROM hx_account WHERE workspace = ?1 AND name = ?2)", "?3"));

#define DEFINITION_OF(table) \
	"SELECT d.name, d.version, d.text FROM " table " t JOIN hx_definition d ON d.name = t.workflow AND d.version = t.definition_version" BY_ID
DB_STMT(stmt_definition_of_run, "evidence_definition_of_run", "ti", "tit", DEFINITION_OF("hx_run"));
DB_STMT(stmt_definition_of_batch, "evidence_definition_of_batch", "ti", "tit", DEFINITION_OF("hx_batch"));
DB_STMT(stmt_definition, "evidence_definition", "ti", "tit",
	"SELECT d.name, d.version, d.text FROM hx_definition d WHERE d.name = ?1 AND d.version = ?2");
enum { DEFINITION_NAME, DEFINITION_VERSION, DEFINITION_TEXT };

#define PREFIX_CHARACTERS 21 /* /batch_ID/ */
/* Not by a range of keys, which would be another one under another collation. */
DB_STMT(stmt_entries_of_batch, "evidence_entries_of_batch", "titii", "iittii",
	"SELECT l.seq, l.amount, l.key, l.reason, l.balance, l.at FROM hx_batch t JOIN hx_account a ON a.subject = t.account"
	" JOIN hx_ledger l ON l.account = a.subject" BY_ID
	" AND substr(l.key, 1, 21) = ?3 AND a.seq <= ?4 ORDER BY l.seq LIMIT ?5");

/* clang-format on */

static const struct row_member subject_members[] = {
	{"status", ROW_TEXT, .at = STATUS}, {"version", ROW_INT, .at = VERSION},
	{"fence", ROW_INT, .at = FENCE},    {"op", ROW_ID, .at = OP, .prefix = "op"},
	{"time", ROW_TIME, .at = AT},       {"seq", ROW_INT, .at = SEQ},
	{"head", ROW_SHA256, .at = HEAD},   {.name = NULL},
};

/* What a subject can be, by how it is named: an id, or NOUN:. */
static const struct kind {
	const char *noun, *prefix;                  /* the latter NULL: it is no id */
	const struct db_stmt *subject, *definition; /* of what has an id; the latter NULL: it has none */
	bool paid;                                  /* it has a ledger */
} kinds[] = {
	{"run", "run", &stmt_run, &stmt_definition_of_run, false},
	{"batch", "batch", &stmt_batch, &stmt_definition_of_batch, true},
	{"job", "job", &stmt_job, NULL, false},
	{"schedule", "sched", &stmt_schedule, NULL, false},
	{"entity", NULL, &stmt_entity, &stmt_definition, false},
	{"account", NULL, &stmt_account, NULL, true},
};

enum { KIND_BATCH = 1, KIND_ENTITY = 4, KIND_ACCOUNT = 5 };
enum { LINE_SUBJECT, LINE_HISTORY, LINE_DEFINITION, LINE_ENTRIES };

/* ---- reading ---- */

static void build_batch_entries(struct api_query *query, struct unit *unit)
{
	int n = snprintf(query->id, sizeof query->id, "/%s/", id_text("batch", query->subject).text);

	ASSERT(n == PREFIX_CHARACTERS);
	UNIT_ADD(unit, UNIT_ANY, &stmt_entries_of_batch, db_text(api_workspace(query->call)), db_int(query->subject),
		 db_str(query->id), db_int(SCANNED_MAX), db_int(EVIDENCE_ROWS_MAX + 1));
}

static void build_by_id(struct api_query *query, const struct kind *kind, struct unit *unit)
{
	struct db_value workspace = db_text(api_workspace(query->call)), subject = db_int(query->subject);

	UNIT_ADD(unit, UNIT_ANY, kind->subject, workspace, subject);
	UNIT_ADD(unit, UNIT_ANY, &stmt_rows, subject, db_int(EVIDENCE_ROWS_MAX + 1));
	if (kind->definition)
		UNIT_ADD(unit, UNIT_ANY, kind->definition, workspace, subject);
	if (kind == &kinds[KIND_BATCH])
		build_batch_entries(query, unit);
}

/* status_wanted: its workflow; held: it is one of the user's own table; number: the version that is in force. */
static void build_entity(const struct api_query *query, struct unit *unit)
{
	struct db_value workspace = db_text(query->held ? slice_str("") : api_workspace(query->call));
	struct db_value workflow = db_text(query->status_wanted), name = db_text(query->name);

	UNIT_ADD(unit, UNIT_ANY, &stmt_entity, workspace, workflow, name);
	UNIT_ADD(unit, UNIT_ANY, &stmt_rows_of_entity, workspace, workflow, name, db_int(EVIDENCE_ROWS_MAX + 1));
	UNIT_ADD(unit, UNIT_ANY, &stmt_definition, workflow, db_int(query->number));
}

static void build_account(const struct api_query *query, struct unit *unit)
{
	struct slice workspace = api_workspace(query->call);

	UNIT_ADD(unit, UNIT_ANY, &stmt_account, db_text(workspace), db_text(query->name));
	UNIT_ADD(unit, UNIT_ANY, &stmt_rows_of_account, db_text(workspace), db_text(query->name),
		 db_int(EVIDENCE_ROWS_MAX + 1));
	account_read_ledger(unit, workspace, query->name, /* after= */ 0, EVIDENCE_ROWS_MAX + 1);
}

static void evidence_build(struct api_query *query, struct unit *unit)
{
	const struct kind *kind = query->of;

	if (kind == &kinds[KIND_ENTITY])
		build_entity(query, unit);
	else if (kind == &kinds[KIND_ACCOUNT])
		build_account(query, unit);
	else
		build_by_id(query, kind, unit);
}

/* ---- writing ---- */

static void add_subject(struct api_query *query, const struct db_rows *rows)
{
	struct strbuf *text = &query->text;
	const struct kind *kind = query->of;
	size_t start;

	json_more(text, "subject");
	start = text->n;
	strbuf_add_char(text, '{');
	json_more_text(text, "name", query->call->params[0]);
	json_more_word(text, "noun", kind->noun);
	json_more_id(text, "id", "subject", db_cell(rows, 0, ID)->i);
	json_more_bool(text, "ownTable", query->held);
	row_json_cells(text, subject_members, rows, 0);
	evidence_seal(text, start);
}

/* Its text names services, programs and, against all advice, keys in the clear: it is for those who may put it. */
static void add_definition(struct strbuf *text, const struct db_rows *rows, bool whole)
{
	uint8_t digest[SHA256_BYTES];
	char hex[2 * SHA256_BYTES + 1];
	struct slice plain;
	size_t start;

	strbuf_add_char(text, '\n');
	json_more(text, "definition");
	if (!rows || !rows->n) {
		strbuf_add_str(text, "null");
		return;
	}
	plain = db_cell(rows, 0, DEFINITION_TEXT)->s;
	sha256(plain.p, plain.n, digest);
	sha256_hex(digest, hex);
	start = text->n;
	strbuf_add_char(text, '{');
	json_more_text(text, "name", db_cell(rows, 0, DEFINITION_NAME)->s);
	json_more_int(text, "version", db_cell(rows, 0, DEFINITION_VERSION)->i);
	json_more_word(text, "textSha256", hex);
	json_more_text(text, "text", whole ? plain : slice_of(NULL, 0));
	evidence_seal(text, start);
}

static void add_rows(struct strbuf *text, const char *member, const struct row_member members[],
		     const struct db_rows *rows)
{
	json_more(text, member);
	strbuf_add_char(text, '[');
	for (size_t i = 0; i < rows->n; i++) {
		size_t start;

		strbuf_add_str(text, i ? ",\n" : "\n");
		start = text->n;
		strbuf_add_char(text, '{');
		row_json_cells(text, members, rows, i);
		evidence_seal(text, start);
	}
	strbuf_add_char(text, ']');
}

static void add_ledger(struct strbuf *text, const struct db_rows *subject, const struct db_rows *entries)
{
	const struct db_value *row = db_cell(subject, 0, 0);

	json_more(text, "ledger");
	if (!entries) {
		strbuf_add_str(text, "null");
		return;
	}
	strbuf_add_char(text, '{');
	json_more_text(text, "account", row[ACCOUNT].s);
	json_more_int(text, "balance", row[BALANCE].i);
	json_more_int(text, "charged", row[CHARGED].i);
	json_more_int(text, "refunded", row[REFUNDED].i);
	add_rows(text, "entries", api_entry_members, entries);
	strbuf_add_char(text, '}');
}

static enum hx_code evidence_judge(struct api_query *query, const struct unit_result *result)
{
	const struct kind *kind = query->of;
	const struct db_rows *subject = &result->rows[LINE_SUBJECT];

	query->detail = "there is no such subject";
	if (!subject->n)
		return HX_NOT_FOUND;
	query->detail = NULL;
	if (db_cell(subject, 0, EXPIRED)->i)
		return HX_RUN_EXPIRED;
	query->detail = "its history is too long for one document: GET /history has it in pages, hapax audit checks it";
	if (result->rows[LINE_HISTORY].n > EVIDENCE_ROWS_MAX)
		return HX_TOO_LARGE;
	query->detail = "its account's ledger is too long for one document: GET /accounts/ID/ledger has it in pages";
	if (kind == &kinds[KIND_BATCH] && db_cell(subject, 0, ENTRIES)->i > SCANNED_MAX)
		return HX_TOO_LARGE;
	return HX_OK;
}

/* An account has no definition, and its ledger in that line's place. */
static const struct db_rows *entries_of(const struct kind *kind, const struct unit_result *result)
{
	if (!kind->paid)
		return NULL;
	return &result->rows[kind->definition ? LINE_ENTRIES : LINE_DEFINITION];
}

static enum hx_code evidence_answered(struct api_query *query, const struct unit_result *result)
{
	const struct kind *kind = query->of;
	const struct db_rows *entries = entries_of(kind, result), *subject = &result->rows[LINE_SUBJECT];
	enum hx_code code = evidence_judge(query, result);
	struct strbuf *text = &query->text;

	if (code || (entries && entries->n > EVIDENCE_ROWS_MAX))
		return code ? code : HX_TOO_LARGE;
	strbuf_add_char(text, '{');
	json_more_word(text, "format", EVIDENCE_FORMAT);
	json_more_word(text, "program", HX_VERSION);
	json_more_time(text, "at", clock_wall(api_parts(query->call)->clock).ms);
	json_more_text(text, "workspace", api_workspace(query->call));
	strbuf_add_char(text, '\n');
	add_subject(query, subject);
	add_definition(text, kind->definition ? &result->rows[LINE_DEFINITION] : NULL,
		       query->call->scope == ROUTE_ADMIN);
	strbuf_add_char(text, '\n');
	add_rows(text, "history", api_history_members, &result->rows[LINE_HISTORY]);
	strbuf_add_char(text, '\n');
	add_ledger(text, subject, entries);
	strbuf_add_char(text, '\n');
	evidence_seal(text, 0);
	return HX_OK;
}

/* ---- asking ---- */

static bool read_subject(struct api_query *query, struct slice text)
{
	static const char account[] = "account:";
	const struct entity_machine *machine;

	for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
		if (kinds[i].prefix && id_parse(kinds[i].prefix, text, &query->subject)) {
			query->of = &kinds[i];
			return true;
		}
	if (slice_starts(text, account)) {
		query->of = &kinds[KIND_ACCOUNT];
		query->name = slice_from(text, sizeof account - 1);
		return true;
	}
	if (!api_entity_split(text, &query->status_wanted, &query->name))
		return false;
	machine = api_machine_named(query->call, query->status_wanted);
	query->of = &kinds[KIND_ENTITY];
	query->held = machine && machine->table;
	query->number = machine ? machine->version : 0;
	return true;
}

void api_evidence(struct http_call *call)
{
	struct api_query *query = api_query_new(
		&(struct api_query){.call = call, .build = evidence_build, .answered = evidence_answered});

	if (!query)
		return;
	if (read_subject(query, call->params[0]))
		api_query_read(query);
	else
		api_refuse(call, HX_NOT_FOUND, api_no_subject);
}
