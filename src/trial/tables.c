/*
 * Tables of the user's in a trial, as the world makes and fills them (model/trial_world.h): statements of sql actions run there, entities of
 * such a table live in it, and rules see its rows. They are made once aside, to see whether all that can be, and how they look.
 *
 * Two workflows that touch the same table, and two of one that does, are explored together (trial.c).
 */
#include <strings.h>

#include "db/driver.h"
#include "model/user_table.h"
#include "trial/parts.h"

#define BYTES_MAX 16000
#define SCHEMA_BYTES_MAX (DEFINITION_FILES_MAX * TRIAL_TABLES_MAX * TRIAL_TABLE_BYTES_MAX)
#define COUNT_NAME "counted"

/* clang-format off */

#define THE_TABLES " FROM sqlite_schema m WHERE m.type = 'table' AND m.name NOT LIKE 'sqlite%'"
DB_STMT(names, "trial_table_names", "", "t", "SELECT m.name" THE_TABLES " ORDER BY m.name");
#define QUOTED(name) "'\"' || replace(" name ", '\"', '\"\"') || '\"'"
/* What JSON has no word for: bytes are told in hex, and what is infinite as null. */
#define VALUE(id)                                                                                                      \
	"'iif(typeof(' || " id " || ')=''blob'',hex(' || " id " || '),iif(+' || " id " || ' IN (9e999,-9e999),NULL,' || " id " || '))'"
/* A statement that tells all rows as {"TABLE": [{"COLUMN": …}, …]}. */
DB_STMT(looks, "trial_table_looks", "", "t",
	"SELECT 'SELECT json_object(' || group_concat(quote(m.name) || ', json((SELECT json_group_array(json_object(' ||"
	" (SELECT group_concat(quote(c.name) || ', ' || " VALUE("c.id") ") FROM (SELECT name, " QUOTED("name") " AS id"
	" FROM pragma_table_info(m.name)) c) ||"
	" ')) FROM (SELECT * FROM ' || " QUOTED("m.name") " || ' ORDER BY 1)))', ', ') || ')'" THE_TABLES);
DB_STMT(make_entity, "trial_make_entity", "itt", "",
	"INSERT INTO hx_entity (subject, workspace, workflow, name, data) VALUES (?1, '', ?2, ?3, '{}')");

/* clang-format on */

/* ---- aside ---- */

static void complain(struct trial *t, const char *what, const char *why)
{
	char words[600];

	snprintf(words, sizeof words, "%s: %s", what, why);
	t->wrong = t->wrong ? t->wrong : arena_copy(t->arena, slice_str(words)).p;
}

/* The same schedule is walked many times, and has to be the same; and a walk is taken back step by step. */
static void check_steady(struct trial *t, const char *sql)
{
	static const char *const unsteady[] = {"random(", "randomblob(", "current_time",     "current_date",
					       "'now'",   "or rollback", "conflict rollback"};

	for (size_t i = 0; i < sizeof unsteady / sizeof *unsteady; i++)
		if (strcasestr(sql, unsteady[i]))
			complain(
				t, sql,
				"chance, the clock and ROLLBACK are not for a world with tables: ask :now for the time");
}

/* What two definitions say alike is said once. */
static void add_texts(struct trial *t, const struct trial_world *world, struct strbuf *schema)
{
	struct hx_error err;

	for (size_t i = 0; world && i < world->tables_n; i++) {
		if (strstr(schema->p, world->tables[i]))
			continue;
		check_steady(t, world->tables[i]);
		strbuf_addf(schema, ";%s", world->tables[i]);
		if (t->tables.db->driver->script(t->tables.db, world->tables[i], &err))
			complain(t, world->tables[i], err.detail);
	}
}

static struct unit_result ask_aside(struct trial *t, struct unit *unit, const char *what)
{
	struct unit_result result = {.verdict = UNIT_FAILED};
	struct hx_error err;

	if (t->tables.db->driver->execute(t->tables.db, &unit, 1, &result, t->arena, &err)) {
		complain(t, what, err.detail);
		result = (struct unit_result){.verdict = UNIT_FAILED};
	}
	return result;
}

/* Can all rows be told? If not, each story would be about that. */
static void look_aside(struct trial *t, struct slice sql)
{
	LOCAL_UNIT(unit);

	t->tables.look = (struct db_stmt){.name = "trial_tables", .sql = sql.p, .in = "", .out = "t"};
	UNIT_ADD(&unit, UNIT_ANY, &t->tables.look);
	if (sql.n > BYTES_MAX)
		complain(t, "tables", "they have too many columns");
	else
		(void)ask_aside(t, &unit, "tables");
}

const char *trial_tables_make(struct trial *t, const struct definition_set *set)
{
	struct db_options options = {.url = "sqlite::memory:", .clock = clock_system()};
	struct unit_result result;
	struct hx_error err;
	LOCAL_UNIT(unit);
	LOCAL_STRBUF(schema, SCHEMA_BYTES_MAX);

	strbuf_add_str(&schema, "CREATE TABLE trial_ledger (action TEXT NOT NULL, effect TEXT)");
	if (db_open(&options, &t->tables.db, &err)) {
		complain(t, "tables", err.detail);
		return arena_keep(t->arena, &schema).p;
	}
	add_texts(t, t->world, &schema);
	for (size_t i = 0; i < set->n && !t->world->tables_n; i++)
		add_texts(t, set->items[i]->world, &schema);
	UNIT_ADD(&unit, UNIT_ANY, &names);
	UNIT_ADD(&unit, UNIT_ANY, &looks);
	result = ask_aside(t, &unit, "tables");
	for (size_t i = 0; result.verdict == UNIT_WON && i < result.rows[0].n && i < TRIAL_TABLES_MAX; i++)
		t->tables.names[t->tables.names_n++] = db_cell(&result.rows[0], i, 0)->s.p;
	if (t->tables.names_n)
		look_aside(t, db_cell(&result.rows[1], 0, 0)->s);
	return arena_keep(t->arena, &schema).p;
}

void trial_tables_made(struct trial *t)
{
	db_close(t->tables.db);
	t->tables.db = NULL;
}

/* ---- definitions ---- */

static bool is_of_name(char c)
{
	return c == '_' || (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static bool mentions(const char *sql, const char *name)
{
	size_t n = strlen(name);

	for (const char *p = strcasestr(sql, name); p; p = strcasestr(p + 1, name))
		if (!is_of_name(p[n]) && (p == sql || !is_of_name(p[-1])))
			return true;
	return false;
}

/* That it has run is counted, after all of it. */
static void add_count(struct trial *t, struct action *action, const struct action_statement *count)
{
	struct action_statement *all = arena_zalloc(t->arena, ACTION_STATEMENTS_MAX * sizeof *all);
	size_t n = action->statements_n;

	ASSERT(all);
	if (n == ACTION_STATEMENTS_MAX || strcmp(action->statements[n - 1].name, COUNT_NAME) == 0)
		return;
	memcpy(all, action->statements, n * sizeof *all);
	all[n] = *count;
	all[n].name = COUNT_NAME;
	action->statements = all;
	action->statements_n++;
}

/* What could not be prepared would fail in each story: so it is told at once. */
static void try_statement(struct trial *t, const struct action_statement *s)
{
	char in[ACTION_PARAMS_MAX + 1] = "", sql[BYTES_MAX];
	struct db_value params[ACTION_PARAMS_MAX] = {0};
	struct db_stmt *stmt = arena_zalloc(t->arena, sizeof *stmt);
	LOCAL_UNIT(unit);

	ASSERT(stmt);
	memset(in, 's', s->params_n);
	snprintf(sql, sizeof sql, "EXPLAIN %s", s->sql);
	*stmt = (struct db_stmt){.name = s->name,
				 .sql = arena_copy(t->arena, slice_str(sql)).p,
				 .in = arena_copy(t->arena, slice_str(in)).p,
				 .out = "",
				 .foreign = true};
	unit_add(&unit, UNIT_ANY, stmt, (unsigned)s->params_n, params);
	(void)ask_aside(t, &unit, "tables are given, so statements of sql actions are run here, by SQLite");
}

unsigned trial_tables_touched(struct trial *t, struct action *action, const struct action_statement *count)
{
	unsigned touched = 0;

	for (size_t i = 0; i < action->statements_n && !t->wrong; i++) {
		for (size_t k = 0; k < t->tables.names_n; k++)
			touched |= (unsigned)mentions(action->statements[i].sql, t->tables.names[k]) << k;
		if (strcmp(action->statements[i].name, COUNT_NAME) != 0)
			try_statement(t, &action->statements[i]);
		check_steady(t, action->statements[i].sql);
	}
	add_count(t, action, count);
	return touched;
}

/* The first row is the entity. */
static struct slice first_row(struct trial *t, const struct user_table *u)
{
	struct db_stmt *stmt = arena_zalloc(t->arena, sizeof *stmt);
	struct unit_result result;
	char sql[300];
	LOCAL_UNIT(unit);

	ASSERT(stmt);
	snprintf(sql, sizeof sql, "SELECT CAST(\"%s\" AS TEXT) FROM \"%s\" ORDER BY 1 LIMIT 1", u->id, u->table);
	*stmt = (struct db_stmt){
		.name = "trial_row", .sql = arena_copy(t->arena, slice_str(sql)).p, .in = "", .out = "t"};
	unit_add(&unit, UNIT_ANY, stmt, 0, NULL);
	result = ask_aside(t, &unit, u->table);
	if (result.verdict == UNIT_WON && result.rows[0].n)
		return db_cell(&result.rows[0], 0, 0)->s;
	complain(t, u->table, "it has no row that could be an entity: insert one");
	return slice_of("", 0);
}

/* SQLite has no schemas: a table is called by its name. */
const struct entity_table *trial_tables_entity(struct trial *t, struct workflow *w, struct trial_machine *m)
{
	const struct entity_table *table;
	struct unit_result columns;
	struct findings findings;
	size_t k = 0;
	LOCAL_UNIT(unit);

	w->table.table = w->table.table ? user_table_name(&w->table) : NULL;
	while (k < t->tables.names_n && (!w->table.table || strcasecmp(t->tables.names[k], w->table.table) != 0))
		k++;
	if (k == t->tables.names_n || t->wrong)
		return NULL;
	entity_table_ask_columns(&unit, w);
	columns = ask_aside(t, &unit, w->name);
	findings_init(&findings, t->arena);
	table = entity_table_new(w, &columns.rows[0], /* postgres= */ false, t->arena, &findings);
	m->meets |= 1u << k;
	if (table)
		m->row = first_row(t, &w->table);
	else
		complain(t, w->name, findings.first ? findings.first->text : "no memory");
	return table;
}

/* ---- in a world ---- */

bool trial_tables_put(const struct trial_member *m, struct strbuf *out)
{
	const struct user_table *u;

	if (!m->machine->entity || !m->machine->entity->table)
		return false;
	u = &m->machine->of->entity->table;
	strbuf_addf(out, ";UPDATE \"%s\" SET \"%s\" = '%s', \"%s\" = 1", u->table, u->status, m->start, u->version);
	return true;
}

void trial_tables_setup(struct sim *sim)
{
	struct trial *t = trial_of(sim);

	for (size_t i = 0; i < t->members_n; i++) {
		LOCAL_STRBUF(sql, BYTES_MAX);
		LOCAL_UNIT(unit);

		if (!trial_tables_put(&t->members[i], &sql))
			continue;
		sim_script(sim, sql.p + 1);
		/* Its shadow is there from the start. */
		UNIT_ADD(&unit, UNIT_ANY, &make_entity, db_int(TRIAL_SUBJECT + (int64_t)i),
			 db_str(t->members[i].machine->of->name), db_text(t->members[i].ref.name));
		(void)sim_run_unit(sim, &unit);
	}
}
