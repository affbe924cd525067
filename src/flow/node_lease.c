/* See node_lease.h. */
#include "flow/node_lease.h"

#include "task/states.h"

/* A line is a guard. */
DB_STMT(stmt_scan, "node_scan", "", "ii",
	"SELECT number, CAST(CASE WHEN until > hx_now_ms() THEN 1 ELSE 0 END AS bigint) FROM hx_node");

DB_STMT(stmt_take, "node_take", "itiii", "i",
	"INSERT INTO hx_node (number, name, token, started_at, until)"
	" VALUES (?1, ?2, ?3, ?4, hx_now_ms() + ?5) ON CONFLICT (number) DO UPDATE"
	" SET name = excluded.name, token = excluded.token, started_at = excluded.started_at, until = excluded.until"
	" WHERE hx_node.until <= hx_now_ms()" /* mutant: node-take-until */
	" RETURNING number");

DB_STMT(stmt_renew, "node_renew", "iiit", "ii",
	"UPDATE hx_node SET until = hx_now_ms() + ?3, name = ?4 WHERE number = ?1"
	" AND token = ?2" /* mutant: node-renew-token */
	" RETURNING number, until - ?3");

DB_STMT(stmt_leave, "node_leave", "ii", "",
	"UPDATE hx_node SET until = hx_now_ms() WHERE number = ?1 AND until > hx_now_ms()"
	" AND token = ?2" /* mutant: node-leave-token -> " AND ?2 > 0" */
);

DB_STMT(stmt_namesakes, "node_namesakes", "ti", "i",
	"SELECT count(*) FROM hx_node WHERE name = ?1 AND number <> ?2 AND until > hx_now_ms()");

DB_STMT(stmt_last_seen, "node_last_seen", "i", "i",
	"SELECT coalesce(max(until) - ?1, 0) - hx_now_ms() FROM hx_node");

DB_STMT(stmt_end_all, "node_end_all", "", "", "UPDATE hx_node SET until = hx_now_ms() WHERE until > hx_now_ms()");

/* engine/fences.h */
DB_STMT(stmt_floor, "node_floor", "", "i", "SELECT floor FROM hx_fences WHERE id = 1");

DB_STMT(stmt_live, "node_live", "", "i", "SELECT count(*) FROM hx_node WHERE until > hx_now_ms()");

enum { LINE_LIVE = 1, LINE_FLOOR, LINE_NAMESAKES };

static void read_others(struct unit *unit, int64_t number, const char *name)
{
	unit_add(unit, UNIT_ANY, &stmt_live, 0, NULL);
	unit_add(unit, UNIT_ANY, &stmt_floor, 0, NULL);
	UNIT_ADD(unit, UNIT_ANY, &stmt_namesakes, db_str(name), db_int(number));
}

void node_scan(struct unit *unit)
{
	unit_add(unit, UNIT_ANY, &stmt_scan, 0, NULL);
}

void node_take(struct unit *unit, int64_t number, const char *name, int64_t token, int64_t now_ms)
{
	UNIT_ADD(unit, UNIT_VERDICT, &stmt_take, db_int(number), db_str(name), db_int(token), db_int(now_ms),
		 db_int(NODE_LEASE_MS));
	read_others(unit, number, name);
}

void node_renew(struct unit *unit, int64_t number, int64_t token, const char *name)
{
	UNIT_ADD(unit, UNIT_VERDICT, &stmt_renew, db_int(number), db_int(token), db_int(NODE_LEASE_MS), db_str(name));
	read_others(unit, number, name);
}

void node_leave(struct unit *unit, int64_t number, int64_t token)
{
	UNIT_ADD(unit, UNIT_ANY, &stmt_leave, db_int(number), db_int(token));
}

void node_last_seen(struct unit *unit)
{
	UNIT_ADD(unit, UNIT_ANY, &stmt_last_seen, db_int(NODE_LEASE_MS));
}

void node_end_all(struct unit *unit)
{
	unit_add(unit, UNIT_ANY, &stmt_end_all, 0, NULL);
}

/* The draw-th of those that are in this state; -1: there is none. */
static int64_t choose_among(const int states[NODES_MAX], int state, uint64_t draw)
{
	int64_t candidates[NODES_MAX] = {0};
	size_t n = 0;

	for (int64_t i = 0; i < NODES_MAX; i++)
		if (states[i] == state)
			candidates[n++] = i;
	return n ? candidates[draw % n] : -1;
}

int64_t node_choose(const struct db_rows *rows, uint64_t draw)
{
	enum { FREE, LAPSED, LEASED };
	int states[NODES_MAX] = {FREE};
	int64_t number;

	for (size_t i = 0; i < rows->n; i++) {
		number = db_cell(rows, i, 0)->i;
		if (number >= 0 && number < NODES_MAX)
			states[number] = db_cell(rows, i, 1)->i ? LEASED : LAPSED;
	}
	number = choose_among(states, FREE, draw);
	return number >= 0 ? number : choose_among(states, LAPSED, draw);
}

/* ---- the task ---- */

enum { NODE_NEW, NODE_SLEEPING, NODE_READING, NODE_TAKING, NODE_RENEWING, NODE_DONE };

static void node_lease_take_start(struct node_lease *l, const struct answer *answer)
{
	l->draw = (uint64_t)answer->id * 0x9e3779b97f4a7c15u >> 32;
	l->asked = answer->mono;
	task_go(&l->task, answer->mono.ns < l->start_at.ns ? NODE_SLEEPING
			  : l->number < 0                  ? NODE_READING
							   : NODE_RENEWING);
}

static void take_numbers(struct node_lease *l, const struct answer *answer)
{
	if (answer->result->verdict != UNIT_WON) {
		task_end(&l->task, HX_STORE_UNAVAILABLE);
		return;
	}
	l->number = node_choose(&answer->result->rows[0], l->draw);
	l->now_ms = answer->now.ms;
	if (l->number < 0)
		task_end(&l->task, HX_BUSY);
	else
		task_go(&l->task, NODE_TAKING);
}

static void node_written(struct node_lease *l, const struct answer *answer)
{
	l->live = db_cell(&answer->result->rows[LINE_LIVE], 0, 0)->i;
	if (answer->result->rows[LINE_FLOOR].n)
		l->floor = db_cell(&answer->result->rows[LINE_FLOOR], 0, 0)->i;
	l->namesakes = db_cell(&answer->result->rows[LINE_NAMESAKES], 0, 0)->i;
	l->store_ms = l->task.at == NODE_RENEWING ? db_cell(&answer->result->rows[0], 0, 1)->i : 0;
	l->answered = answer->mono;
	task_end(&l->task, HX_OK);
}

static void lost_node(struct node_lease *l, const struct answer *answer UNUSED)
{
	if (l->task.at == NODE_TAKING)
		task_go(&l->task, NODE_READING);
	else
		task_end(&l->task, HX_STALE_FENCE);
}

/* A renewal may be sent twice. */
static void failed_node(struct node_lease *l, const struct answer *answer UNUSED)
{
	if (l->task.at == NODE_TAKING)
		l->number = -1;
	task_end(&l->task, HX_STORE_UNAVAILABLE);
}

TASK_VERDICTS(node_lease_take_written, struct node_lease, [UNIT_WON] = node_written, [UNIT_LOST] = lost_node,
	      [UNIT_REFUSED] = lost_node, [UNIT_FAILED] = failed_node, [UNIT_UNKNOWN] = failed_node);

static void build_scan(const struct node_lease *l UNUSED, struct unit *unit)
{
	node_scan(unit);
}

TASK_UNIT(build_take, struct node_lease, l, node_take(unit, l->number, l->name, l->token, l->now_ms));
TASK_UNIT(build_renew, struct node_lease, l, node_renew(unit, l->number, l->token, l->name));

static const TASK_STATES(struct node_lease) node_states[] = {
	[NODE_NEW] = {"new", node_lease_take_start},
	[NODE_SLEEPING] = {"sleeping", node_lease_take_start, .until = offsetof(struct node_lease, start_at)},
	[NODE_READING] = {"reading", take_numbers, build_scan},
	[NODE_TAKING] = {"taking", node_lease_take_written, build_take},
	[NODE_RENEWING] = {"renewing", node_lease_take_written, build_renew},
	[NODE_DONE] = {"done"},
};

TASK_KIND(node_kind, "node lease", struct node_lease, node_states);

void node_lease_init(struct node_lease *lease, const char *name, int64_t token, int64_t number,
		     struct mono_time start_at)
{
	*lease = (struct node_lease){.name = name, .token = token, .number = number, .start_at = start_at};
	task_init(&lease->task, &node_kind, /* topic= */ 0);
}
