/* Building units: everything that could be wrong here is a programmer's mistake, so it is asserted. */
#include "db/unit.h"

#include "base/hash.h"

void unit_init(struct unit *unit, int64_t op)
{
	unit->op = op;
	unit->limit_ms = 0;
	unit->tenant = 0;
	unit->lines_n = 0;
	unit->subjects_n = 0;
	unit->shared = 0;
	unit->wakes_n = 0;
	unit->offers_n = 0;
	unit->apart = 0;
	unit->together = NULL;
}

static bool unit_fits(char letter, enum db_type type)
{
	return type == DB_NULL || (letter == 'i' && type == DB_INT) || (letter == 't' && type == DB_TEXT) ||
	       (letter == 'b' && type == DB_BLOB) || (letter == 's' && (type == DB_INT || type == DB_TEXT));
}

static void copy_params(const struct db_stmt *stmt, unsigned n, const struct db_value *params, struct db_value *to)
{
	ASSERT(n <= STMT_PARAMS_MAX);
	for (unsigned i = 0; i < n; i++) {
		ASSERT(unit_fits(stmt->in[i], params[i].type));
		to[i] = params[i];
	}
	ASSERT(stmt->in[n] == '\0');
}

void unit_add(struct unit *unit, enum unit_rule rule, const struct db_stmt *stmt, unsigned params_n,
	      const struct db_value *params)
{
	ASSERT(unit->lines_n < UNIT_LINES_MAX);

	struct unit_line *line = &unit->lines[unit->lines_n++];

	line->stmt = stmt;
	line->rule = rule;
	line->params_n = params_n;
	copy_params(stmt, params_n, params, line->params);
}

void unit_together(struct unit *unit, unsigned rows, const struct db_stmt *stmt, unsigned params_n,
		   const struct db_value *params)
{
	ASSERT(rows < unit->lines_n && stmt_has_set_form(stmt));
	unit->together = stmt;
	unit->together_n = params_n;
	unit->together_rows = rows;
	copy_params(stmt, params_n, params, unit->together_params);
}

static unsigned add_subject(struct unit *unit, int64_t subject)
{
	for (unsigned i = 0; i < unit->subjects_n; i++)
		if (unit->subjects[i] == subject)
			return i;
	ASSERT(unit->subjects_n < UNIT_SUBJECTS_MAX);
	unit->subjects[unit->subjects_n] = subject;
	return unit->subjects_n++;
}

void unit_touch(struct unit *unit, int64_t subject)
{
	unsigned bit = 1u << add_subject(unit, subject);

	unit->apart &= ~bit;
	unit->shared &= ~bit;
}

void unit_share(struct unit *unit, int64_t subject)
{
	unsigned had = unit->subjects_n, i = add_subject(unit, subject);

	if (i == had)
		unit->shared |= 1u << i;
	unit->apart &= ~(1u << i);
}

void unit_keep_apart(struct unit *unit, int64_t name)
{
	unsigned had = unit->subjects_n, i = add_subject(unit, name);

	if (i == had)
		unit->apart |= 1u << i;
}

void unit_wake(struct unit *unit, int64_t topic)
{
	for (unsigned i = 0; i < unit->wakes_n; i++)
		if (unit->wakes[i] == topic)
			return;
	ASSERT(unit->wakes_n < UNIT_WAKES_MAX);
	unit->wakes[unit->wakes_n++] = topic;
}

bool unit_offer(struct unit *unit, int64_t stand, uint32_t n)
{
	unsigned i = 0;

	while (i < unit->offers_n && unit->offers[i].stand != stand)
		i++;
	if (i == UNIT_OFFERS_MAX)
		return false;
	if (i == unit->offers_n)
		unit->offers[unit->offers_n++] = (struct offer){stand, 0};
	unit->offers[i].n += n;
	return true;
}

void unit_limit(struct unit *unit, int64_t limit_ms)
{
	ASSERT(limit_ms > 0);
	if (unit->limit_ms < limit_ms)
		unit->limit_ms = limit_ms;
}

uint64_t unit_tenant(struct slice workspace)
{
	return hash_bytes(1, workspace.p, workspace.n) | 1;
}

void unit_for(struct unit *unit, struct slice workspace)
{
	unit->tenant = unit_tenant(workspace);
}

bool unit_is_plain(const struct unit *unit)
{
	for (unsigned i = 0; i < unit->lines_n; i++)
		if ((unit->lines[i].rule != UNIT_ANY && i > 0) || unit->lines[i].stmt->foreign)
			return false;
	return true;
}

bool unit_is_serial(const struct unit *unit)
{
	return !unit->limit_ms && (unit->together || !unit_is_plain(unit));
}

bool unit_only_reads(const struct unit *unit)
{
	for (unsigned i = 0; i < unit->lines_n; i++)
		if (stmt_writes(unit->lines[i].stmt, STMT_SQLITE))
			return false;
	return true;
}

bool unit_carries(const struct unit *unit, unsigned line)
{
	const struct db_stmt *carried = unit->lines[line].stmt->carries;

	return carried && line + 1 < unit->lines_n && carried == unit->lines[line + 1].stmt;
}

bool unit_touches_same(const struct unit *a, const struct unit *b)
{
	for (unsigned i = 0; i < a->subjects_n; i++)
		for (unsigned j = 0; j < b->subjects_n; j++)
			if (a->subjects[i] == b->subjects[j])
				return true;
	return false;
}

const char *unit_verdict_name(enum unit_verdict verdict)
{
	static const char *const names[] = {"won", "lost", "refused", "failed", "unknown"};

	return names[verdict];
}
