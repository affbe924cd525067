/*
 * A unit of work: an ordered list of statements that commit together or not at all.
 *
 * Each line has a rule, which says what zero rows mean:
 *
 *   VERDICT   somebody else was first: the unit is LOST, the lines after it are skipped
 *   MUST      a condition does not hold: the unit is REFUSED, the answer names the line
 *   ANY       nothing
 *
 * A unit that is not WON leaves no row behind, also where its losing line is not its first. A unit is *plain*
 * when no VERDICT or MUST stands after its first line and no line is foreign: losing then needs no undo, and PostgreSQL
 * may run it in set form; the others run under a savepoint of their own, on SQLite only once one of them has lost late.
 *
 * A unit may say besides how PostgreSQL does all of it for many at once, also for several of one subject (unit_together): the
 * statement wins for those it returns a row for, as if their lines had run one after the other, and leaves all others as they
 * were. These run by their lines, which say why not. So it need not know of every case, only never win where the lines would not.
 *
 * A unit names the subjects it writes or needs to hold still (PostgreSQL locks these rows, in one order for
 * the whole group, before the first line runs), its op, and the topics it wakes once it is durable.
 * Parameters are borrowed: what they point to must live until the unit is answered.
 *
 * A unit that has statements of the user's, or works on a table of theirs, is *limited*: nobody knows how long these take,
 * or who holds a lock there. Such units never share a transaction with others (task/group.h), and have their time.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "db/stmt.h"

#define UNIT_LINES_MAX 40
#define UNIT_SUBJECTS_MAX 24
#define UNIT_WAKES_MAX 10
#define UNIT_OFFERS_MAX 4

enum unit_rule { UNIT_VERDICT, UNIT_MUST, UNIT_ANY };

/* n pieces of work for those who wait at a stand (task/lane.h): each of them is for one, and wakes one. */
struct offer {
	int64_t stand;
	uint32_t n;
};

struct unit_line {
	const struct db_stmt *stmt;
	enum unit_rule rule;
	unsigned params_n;
	struct db_value params[STMT_PARAMS_MAX];
};

struct unit {
	int64_t op;       /* written into every row that the unit wins */
	int64_t limit_ms; /* it works on what is the user's, and for no longer than this; 0: on what is ours alone */
	uint64_t tenant;  /* whose it is, where places are shared out (task/shares.h); 0: nobody's in particular */
	unsigned lines_n;
	unsigned subjects_n;
	unsigned wakes_n;
	unsigned offers_n;
	int64_t subjects[UNIT_SUBJECTS_MAX];
	unsigned shared; /* bit i: other units of a set may name subjects[i], too; see unit_share() */
	unsigned apart; /* bit i: subjects[i] is no row of hx_subject, only a name that no two units of a group share */
	int64_t wakes[UNIT_WAKES_MAX];
	struct offer offers[UNIT_OFFERS_MAX];
	struct unit_line lines[UNIT_LINES_MAX];
	const struct db_stmt *together; /* NULL: its lines are the only way */
	unsigned together_n;
	unsigned together_rows; /* the line that its rows are those of */
	struct db_value together_params[STMT_PARAMS_MAX];
};

enum unit_verdict {
	UNIT_WON,
	UNIT_LOST,    /* a VERDICT line met zero rows */
	UNIT_REFUSED, /* a MUST line met zero rows: see `line` */
	UNIT_FAILED,  /* nothing happened, for a reason outside of the unit or in its data: see `error` */
	UNIT_UNKNOWN, /* the commit was sent and its answer was lost: look the op up */
};

/* Rows of one line, in the order of the store; cells[row * columns + column]. */
struct db_rows {
	size_t n;
	size_t columns;
	const struct db_value *cells;
};

struct unit_result {
	enum unit_verdict verdict;
	int line;                            /* the line that decided against the unit, or -1 */
	struct hx_error error;               /* FAILED */
	struct db_rows rows[UNIT_LINES_MAX]; /* of the unit's lines; those after them are not set */
};

/* Starts an empty unit in memory that need not be zeroed. */
void unit_init(struct unit *unit, int64_t op);
/* An empty one without an op, in a block of its own. */
#define LOCAL_UNIT(name)                                                                                               \
	struct unit name;                                                                                              \
	unit_init(&name, /* op= */ 0)
/* Adds a line. The parameters must fit the statement's `in` in number and type (NULL fits everywhere). */
void unit_add(struct unit *unit, enum unit_rule rule, const struct db_stmt *stmt, unsigned params_n,
	      const struct db_value *params);
#define UNIT_ADD(unit, rule, stmt, ...)                                                                                \
	unit_add(unit, rule, stmt, sizeof((const struct db_value[]){__VA_ARGS__}) / sizeof(struct db_value),           \
		 (const struct db_value[]){__VA_ARGS__})
/* After all lines: the statement, of a set form alone, that does the same for many units. Its rows are those of the line `rows`. */
void unit_together(struct unit *unit, unsigned rows, const struct db_stmt *stmt, unsigned params_n,
		   const struct db_value *params);
#define UNIT_TOGETHER(unit, rows, stmt, ...)                                                                           \
	unit_together(unit, rows, stmt, sizeof((const struct db_value[]){__VA_ARGS__}) / sizeof(struct db_value),      \
		      (const struct db_value[]){__VA_ARGS__})
/* Adding a subject that is named already changes nothing. */
void unit_touch(struct unit *unit, int64_t subject);
/*
 * As unit_touch, for one whose rows all who share it write in the same way: in set form, where a row that several hit is changed
 * for one of them, that one's change will do for all. Such units of one subject may be in one group, if they are plain. One that
 * the unit touches besides is touched.
 */
void unit_share(struct unit *unit, int64_t subject);
/* As unit_touch, but for what has a row elsewhere: nothing is locked for it, and no table of subjects is needed. */
void unit_keep_apart(struct unit *unit, int64_t name);
/* One that is woken already changes nothing. */
void unit_wake(struct unit *unit, int64_t topic);
/* False: it has offers for as many stands as it may, and this is none of them. */
bool unit_offer(struct unit *unit, int64_t stand, uint32_t n) HX_MUST_CHECK;
/* The unit works on what is the user's, and may take that long. Of several limits the longest counts. */
void unit_limit(struct unit *unit, int64_t limit_ms);
/* What a workspace is where places are shared out; never 0. */
uint64_t unit_tenant(struct slice workspace);
/* It is done for this workspace. */
void unit_for(struct unit *unit, struct slice workspace);
bool unit_is_plain(const struct unit *unit);
/* On PostgreSQL it runs after those of its group that touch the same subjects, and sees what they wrote: not in one set with them. */
bool unit_is_serial(const struct unit *unit);
/* Of the row form of SQLite. */
bool unit_only_reads(const struct unit *unit);
/* Is the line after this one what its statement carries? */
bool unit_carries(const struct unit *unit, unsigned line);
bool unit_touches_same(const struct unit *a, const struct unit *b);

static inline const struct db_value *db_cell(const struct db_rows *rows, size_t row, size_t column)
{
	return &rows->cells[row * rows->columns + column];
}

/* Of a unit that is all there is to do: won, lost (or refused), failed or unknown, as a code. */
static inline enum hx_code unit_code(enum unit_verdict verdict, enum hx_code lost, enum hx_code unknown)
{
	return verdict == UNIT_WON       ? HX_OK
	       : verdict <= UNIT_REFUSED ? lost
	       : verdict == UNIT_FAILED  ? HX_STORE_UNAVAILABLE
					 : unknown;
}

const char *unit_verdict_name(enum unit_verdict verdict);
