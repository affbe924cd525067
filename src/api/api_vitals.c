/* See api_vitals.h. */
#include "api/api_vitals.h"

#include <stdlib.h>

#include "api/api.h"
#include "api/row_json.h"
#include "base/process_stats.h"
#include "base/thread.h"
#include "engine/backlog.h"
#include "serve/server.h"

#define SIZE_EVERY 6 /* rows: once a minute */

/* ---- rows ---- */

/* What is told of each interval, in this order. Counts, then microseconds, then how much there is at its end. */
enum {
	REQUESTS,
	ERRORS,
	TRANSITIONS,
	COMMITS,
	UNITS,
	REQUEST_P50,
	REQUEST_P99,
	COMMIT_P50,
	COMMIT_P99,
	ACTION_P50,
	ACTION_P99,
	LANE_WAITING,
	ACTIONS_RUNNING,
	CONNECTIONS,
	RESIDENT,
	STORE,
	COLUMNS
};
static const char columns[] =
	"[\"at\",\"requests\",\"errors\",\"transitions\",\"commits\",\"units\",\"requestP50\",\"requestP99\",\"commitP50\","
	"\"commitP99\",\"actionP50\",\"actionP99\",\"laneWaiting\",\"actionsRunning\",\"connections\",\"residentBytes\",\"storeBytes\"]";

struct vitals_row {
	int64_t at;
	uint64_t values[COLUMNS];
};

struct vitals {
	struct api *api;
	struct http_server *server;
	struct thread thread;
	/* How large the store is: asked once in a while, of the readers. */
	struct seat seat;
	struct single single;
	_Atomic uint64_t store_bytes;
	atomic_bool asked; /* the seat is with the readers */
	/* Under the mutex. */
	struct monitor monitor;
	bool stopping;
	size_t n, next; /* rows there are, and where the next one goes */
	struct vitals_row rows[VITALS_ROWS];
};

/* All counters at one moment. */
struct vitals_look {
	struct lane_stats lanes;
	struct port_stats port;
	struct http_stats http;
	struct histogram acted;
};

static void vitals_look(const struct vitals *vitals, struct vitals_look *ret)
{
	const struct engine_parts *parts = engine_parts(vitals->api->engine);

	*ret = (struct vitals_look){.acted = {.took_us = 0}};
	lanes_read_stats(parts->lanes, &ret->lanes);
	port_read_stats(parts->port, &ret->port);
	http_server_read_stats(vitals->server, &ret->http);
	for (size_t kind = 0; kind < ACTION_KINDS_N; kind++)
		histogram_add(&ret->acted, &ret->port.answered[kind]);
}

/* The time within which so many hundredths were done between two looks, in microseconds, straight through the range it is in; 0: nothing was. */
static uint64_t quantile(const struct histogram *before, const struct histogram *now, uint64_t hundredths)
{
	uint64_t counts[HISTOGRAM_RANGES], sum = 0, wanted, seen = 0;
	int64_t from = 0;

	for (size_t i = 0; i < HISTOGRAM_RANGES; i++) {
		counts[i] = now->counts[i] - before->counts[i];
		sum += counts[i];
	}
	if (!sum)
		return 0;
	wanted = (sum * hundredths + 99) / 100;
	for (size_t i = 0; i < HISTOGRAM_RANGES - 1; i++) {
		int64_t to = histogram_bounds_us[i];

		if (seen + counts[i] >= wanted)
			return (uint64_t)(from +
					  (int64_t)((double)(to - from) * (double)(wanted - seen) / (double)counts[i]));
		seen += counts[i];
		from = to;
	}
	return (uint64_t)from; /* or longer */
}

static struct vitals_row row_between(const struct vitals_look *before, const struct vitals_look *now, uint64_t store)
{
	const struct group_stats *was = &before->lanes.group, *is = &now->lanes.group;
	struct process_stats process;

	process_stats_read(&process);
	return (struct vitals_row){
		.at = clock_wall(clock_system()).ms,
		.values = {
			[REQUESTS] = now->http.requests - before->http.requests,
			[ERRORS] = now->http.responses[3] - before->http.responses[3],
			[TRANSITIONS] = is->transitions - was->transitions,
			[COMMITS] = is->groups - was->groups,
			[UNITS] = is->units - was->units,
			[REQUEST_P50] = quantile(&before->http.answered, &now->http.answered, 50),
			[REQUEST_P99] = quantile(&before->http.answered, &now->http.answered, 99),
			[COMMIT_P50] = quantile(&was->durable, &is->durable, 50),
			[COMMIT_P99] = quantile(&was->durable, &is->durable, 99),
			[ACTION_P50] = quantile(&before->acted, &now->acted, 50),
			[ACTION_P99] = quantile(&before->acted, &now->acted, 99),
			[LANE_WAITING] = now->lanes.waiting,
			[ACTIONS_RUNNING] = now->port.running,
			[CONNECTIONS] = now->http.connections_open,
			[RESIDENT] = process.resident_bytes > 0 ? (uint64_t)process.resident_bytes : 0,
			[STORE] = store,
		}};
}

/* ---- how large the store is ---- */

/* Of SQLite's log nothing is said: it comes and goes. PostgreSQL looks at each of its files, which is why it is not asked all the time. */
DB_STMT(stmt_size, "vitals_size", "", "i",
	"SELECT c.page_count * s.page_size FROM pragma_page_count() c, pragma_page_size() s",
	.pg_sql = "SELECT pg_database_size(current_database())");

static void size_build(const struct single *single UNUSED, struct unit *unit)
{
	unit_add(unit, UNIT_ANY, &stmt_size, 0, NULL);
}

static enum hx_code size_answered(struct single *single, const struct unit_result *result)
{
	struct vitals *vitals = single->context;

	atomic_store(&vitals->store_bytes, (uint64_t)db_cell(&result->rows[0], 0, 0)->i);
	return HX_OK;
}

/* One that failed leaves the last one. */
static void size_done(struct seat *seat, enum hx_code code UNUSED)
{
	struct vitals *vitals = (struct vitals *)((char *)seat - offsetof(struct vitals, seat));

	atomic_store(&vitals->asked, false);
}

static void size_ask(struct vitals *vitals)
{
	if (atomic_exchange(&vitals->asked, true))
		return;
	single_init(&vitals->single, vitals, size_build, size_answered);
	vitals->seat = (struct seat){.task = &vitals->single.task, .done = size_done};
	if (readers_submit(engine_parts(vitals->api->engine)->readers, &vitals->seat))
		atomic_store(&vitals->asked, false); /* busy, or stopping */
}

/* ---- the thread ---- */

static void *vitals_run(void *context)
{
	struct vitals *vitals = context;
	struct vitals_look before, now;

	vitals_look(vitals, &before);
	size_ask(vitals);
	LOCKED(&vitals->monitor.mutex);
	for (unsigned turn = 1; !vitals->stopping; turn++) {
		struct mono_time until = time_in_ms(VITALS_EVERY_MS);

		while (!vitals->stopping && monitor_wait_until(&vitals->monitor, until))
			;
		if (vitals->stopping)
			break;
		vitals_look(vitals, &now);
		vitals->rows[vitals->next] = row_between(&before, &now, atomic_load(&vitals->store_bytes));
		vitals->next = (vitals->next + 1) % VITALS_ROWS;
		vitals->n += vitals->n < VITALS_ROWS;
		before = now;
		if (turn % SIZE_EVERY == 0) {
			monitor_unlock(&vitals->monitor);
			size_ask(vitals);
			monitor_lock(&vitals->monitor);
		}
	}
	return NULL;
}

struct vitals *vitals_new(struct api *api)
{
	struct vitals *vitals = calloc(1, sizeof *vitals);

	if (!vitals)
		return NULL;
	vitals->api = api;
	monitor_init(&vitals->monitor);
	return vitals;
}

void vitals_start(struct vitals *vitals, struct http_server *server)
{
	struct hx_error unused;

	if (!vitals)
		return;
	vitals->server = server;
	(void)!thread_start(&vitals->thread, vitals_run, vitals, "the thread of vitals", &unused);
}

void vitals_stop(struct vitals *vitals)
{
	if (!vitals)
		return;
	monitor_stop(&vitals->monitor, &vitals->stopping, &vitals->thread);
}

void vitals_free(struct vitals *vitals)
{
	if (!vitals)
		return;
	ASSERT(!atomic_load(&vitals->asked));
	monitor_release(&vitals->monitor);
	free(vitals);
}

/* ---- a call ---- */

#define LEASES_MAX 10000
#define LESSEES_MAX 200

/* What a node holds: claims of runs, steps and batches in its name. Whoever answers is alive, also on SQLite, where nobody renews. */
DB_STMT(stmt_nodes, "vitals_nodes", "it", "tiiii",
	"SELECT n.name, n.started_at, n.until, CAST(CASE WHEN n.until > hx_now_ms() OR n.name = ?2 THEN 1 ELSE 0 END AS bigint),"
	" (SELECT count(*) FROM (SELECT s.id FROM hx_subject s WHERE s.owner IS NOT NULL AND s.owner = n.name LIMIT ?1) x)"
	" FROM hx_node n WHERE n.until > hx_now_ms() - 3600000 OR n.name = ?2 ORDER BY n.number");
enum { NODE_NAME, NODE_STARTED, NODE_UNTIL, NODE_ALIVE, NODE_LEASES };

static const struct row_member node_members[] = {
	{"name", ROW_TEXT, .at = NODE_NAME},    {"startedAt", ROW_TIME, .at = NODE_STARTED},
	{"until", ROW_TIME, .at = NODE_UNTIL},  {"alive", ROW_BOOL, .at = NODE_ALIVE},
	{"leases", ROW_INT, .at = NODE_LEASES}, {.name = NULL},
};

/* Who has leased jobs or turns of the caller's workspace. */
DB_STMT(stmt_lessees, "vitals_workers", "iti", "ttii",
	"SELECT s.owner, coalesce(j.queue, f.name), count(*), min(s.updated_at) FROM (SELECT id, owner, updated_at FROM hx_subject"
	" WHERE owner IS NOT NULL LIMIT ?1) AS s LEFT JOIN hx_job j ON j.subject = s.id AND j.workspace = ?2 AND j.queue <> 'after-effects'"
	" LEFT JOIN hx_function f ON f.subject = s.id AND f.workspace = ?2 WHERE coalesce(j.subject, f.subject) IS NOT NULL"
	" GROUP BY 1, 2 ORDER BY 1, 2 LIMIT ?3");
enum { LESSEE_NAME, LESSEE_OF, LESSEE_LEASES, LESSEE_SINCE };

static const struct row_member lessee_members[] = {
	{"name", ROW_TEXT, .at = LESSEE_NAME},
	{"of", ROW_TEXT, .at = LESSEE_OF},
	{"leases", ROW_INT, .at = LESSEE_LEASES},
	{"since", ROW_TIME, .at = LESSEE_SINCE},
	{.name = NULL},
};

enum { LINE_NODES, LINE_LESSEES };

static void vitals_build(struct api_query *query, struct unit *unit)
{
	UNIT_ADD(unit, UNIT_ANY, &stmt_nodes, db_int(LEASES_MAX),
		 db_str(engine_options_of(api_of(query->call)->engine)->node));
	UNIT_ADD(unit, UNIT_ANY, &stmt_lessees, db_int(LEASES_MAX), db_text(api_workspace(query->call)),
		 db_int(LESSEES_MAX));
}

static void add_list(struct strbuf *text, const char *name, const struct row_member members[],
		     const struct db_rows *rows)
{
	json_more(text, name);
	strbuf_add_char(text, '[');
	for (size_t i = 0; i < rows->n; i++) {
		strbuf_add_str(text, i ? ",{" : "{");
		row_json_cells(text, members, rows, i);
		strbuf_add_char(text, '}');
	}
	strbuf_add_char(text, ']');
}

static void add_rows(struct vitals *vitals, struct strbuf *text)
{
	json_more(text, "rows");
	strbuf_add_char(text, '[');
	if (vitals) {
		LOCKED(&vitals->monitor.mutex);
		for (size_t i = 0; i < vitals->n; i++) {
			size_t at = (vitals->next + VITALS_ROWS - vitals->n + i) % VITALS_ROWS;
			const struct vitals_row *row = &vitals->rows[at];

			strbuf_addf(text, "%s[%lld", i ? "," : "", (long long)row->at);
			for (size_t column = 0; column < COLUMNS; column++)
				strbuf_addf(text, ",%llu", (unsigned long long)row->values[column]);
			strbuf_add_char(text, ']');
		}
	}
	strbuf_add_char(text, ']');
}

static void add_counts(struct strbuf *text, const char *member, const char *label, const struct backlog_count *counts,
		       size_t n)
{
	json_more(text, member);
	strbuf_add_char(text, '[');
	for (size_t i = 0; i < n; i++) {
		strbuf_add_str(text, i ? ",{" : "{");
		json_more_word(text, "kind", counts[i].kind);
		json_more_word(text, label, counts[i].name);
		json_more_int(text, "n", counts[i].n);
		json_more_int(text, "ageMs", counts[i].age_ms);
		strbuf_add_char(text, '}');
	}
	strbuf_add_char(text, ']');
}

/* As in /metrics: queues have names of a workspace's own, and are for those alone who see everything. */
static void add_backlog(const struct http_call *call, struct strbuf *text)
{
	struct backlog_counts *counts = malloc(sizeof *counts);

	if (!counts)
		return;
	backlog_read(api_parts(call)->backlog, counts);
	if (call->scope != ROUTE_ADMIN)
		backlog_hide_queues(counts);
	json_more_bool(text, "counted", counts->known);
	add_counts(text, "due", "queue", counts->due, counts->due_n);
	add_counts(text, "attention", "workflow", counts->attention, counts->attention_n);
	free(counts);
}

static enum hx_code vitals_answered(struct api_query *query, const struct unit_result *result)
{
	struct api *api = api_of(query->call);
	struct strbuf *text = &query->text;

	strbuf_add_char(text, '{');
	json_more_word(text, "node", engine_options_of(api->engine)->node);
	json_more_word(text, "version", HX_VERSION);
	json_more_time(text, "at", clock_wall(clock_system()).ms);
	json_more_int(text, "everyMs", VITALS_EVERY_MS);
	add_list(text, "nodes", node_members, &result->rows[LINE_NODES]);
	add_list(text, "workers", lessee_members, &result->rows[LINE_LESSEES]);
	add_backlog(query->call, text);
	json_more_json(text, "columns", slice_str(columns));
	add_rows(api->vitals, text);
	strbuf_add_char(text, '}');
	return HX_OK;
}

void api_vitals(struct http_call *call)
{
	struct api_query *query = api_query_new(
		&(struct api_query){.call = call, .build = vitals_build, .answered = vitals_answered});

	if (query)
		api_query_read(query);
}
