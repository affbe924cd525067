/*
 * The statements of account.h, and the credit as a task.
 *
 * An entry takes its seq and its balance from the account's row, and then that row moves on: both lines stand in one unit
 * that holds the account's subject, so nothing comes between them. Each guard stands on a line of its own.
 */
#include "flow/account.h"

#include "flow/answer.h"
#include "flow/batch.h"
#include "flow/shapes.h"
#include "task/states.h"

#define OPEN "OPEN"

DB_STMT(stmt_create, "account_create", "ittii", "",
	"INSERT INTO hx_account (subject, workspace, name, balance, seq, created_at) VALUES (?1, ?2, ?3, ?4, 1, ?5)"
	" ON CONFLICT (workspace, name) DO NOTHING");

#define INTO_LEDGER "INSERT INTO hx_ledger (account, seq, amount, key, reason, balance, op, at)"

/* After the creation in its unit. Also of 0: a ledger is never empty. */
DB_STMT(stmt_opening, "account_opening", "ii", "",
	INTO_LEDGER " SELECT subject, seq, balance, '/opening', 'opening', balance, ?2, created_at FROM hx_account"
	" WHERE subject = ?1");

DB_STMT(stmt_entry, "account_entry", "iittii", "",
	INTO_LEDGER " SELECT subject, seq + 1, ?2, ?3, ?4, balance + ?2, ?5, ?6 FROM hx_account"
	" WHERE subject = ?1"
	" ON CONFLICT (account, key) DO NOTHING");

/* After its entry. */
DB_STMT(stmt_raise, "account_raise", "iii", "i",
	"UPDATE hx_account SET balance = balance + ?3, seq = seq + 1"
	" WHERE subject = ?1"
	" AND balance <= ?2 - ?3" /* mutant: credit-limit */
	" RETURNING balance");

#define OF_NAME " WHERE a.workspace = ?1 AND a.name = ?2"
DB_STMT(stmt_read, "account_read", "tt", "iiii",
	"SELECT a.subject, a.balance, a.seq, a.created_at FROM hx_account a" OF_NAME);

DB_STMT(stmt_list, "account_list", "tti", "tii",
	"SELECT name, balance, created_at FROM hx_account WHERE workspace = ?1 AND name > ?2 ORDER BY name LIMIT ?3");

DB_STMT(stmt_read_ledger, "account_read_ledger", "ttii", "iittii",
	"SELECT l.seq, l.amount, l.key, l.reason, l.balance, l.at FROM hx_ledger l WHERE l.account ="
	" (SELECT a.subject FROM hx_account a" OF_NAME ") AND l.seq > ?3 ORDER BY l.seq LIMIT ?4");

DB_STMT(stmt_read_entry, "account_read_entry", "ttt", "iiiii",
	"SELECT a.subject, a.balance, a.created_at, l.amount, l.op"
	" FROM hx_account a LEFT JOIN hx_ledger l ON l.account = a.subject AND l.key = ?3" OF_NAME);
enum { ENTRY_SUBJECT, ENTRY_BALANCE, ENTRY_CREATED_AT, ENTRY_AMOUNT, ENTRY_OP };

/* ---- units ---- */

int64_t account_kind(void)
{
	return subject_kind("account", "");
}

void account_create(struct unit *unit, const struct stamp *stamp, struct slice workspace, struct slice name,
		    int64_t subject, int64_t balance)
{
	ASSERT(balance >= 0 && balance <= ACCOUNT_AMOUNT_MAX);
	UNIT_ADD(unit, UNIT_VERDICT, &stmt_create, db_int(subject), db_text(workspace), db_text(name), db_int(balance),
		 db_int(stamp->at.ms));
	subject_insert(unit, stamp, subject, account_kind(), OPEN);
	UNIT_ADD(unit, UNIT_ANY, &stmt_opening, db_int(subject), db_int(stamp->op));
}

void account_read(struct unit *unit, struct slice workspace, struct slice name)
{
	UNIT_ADD(unit, UNIT_ANY, &stmt_read, db_text(workspace), db_text(name));
}

void account_list(struct unit *unit, struct slice workspace, struct slice after, int64_t limit)
{
	UNIT_ADD(unit, UNIT_ANY, &stmt_list, db_text(workspace), db_text(after), db_int(limit));
}

void account_read_ledger(struct unit *unit, struct slice workspace, struct slice name, int64_t after, int64_t limit)
{
	UNIT_ADD(unit, UNIT_ANY, &stmt_read_ledger, db_text(workspace), db_text(name), db_int(after), db_int(limit));
}

void account_read_entry(struct unit *unit, struct slice workspace, struct slice name, struct slice key)
{
	UNIT_ADD(unit, UNIT_ANY, &stmt_read_entry, db_text(workspace), db_text(name), db_text(key));
}

void account_add_credit(struct unit *unit, const struct stamp *stamp, int64_t subject, int64_t amount, struct slice key)
{
	ASSERT(amount >= 1 && amount <= ACCOUNT_AMOUNT_MAX);
	unit_touch(unit, subject); /* mutant: credit-not-held */
	UNIT_ADD(unit, UNIT_VERDICT, &stmt_entry, db_int(subject), db_int(amount), db_text(key), db_str("credit"),
		 db_int(stamp->op), db_int(stamp->at.ms));
	UNIT_ADD(unit, UNIT_MUST, &stmt_raise, db_int(subject), db_int(ACCOUNT_BALANCE_MAX), db_int(amount));
	batch_wake_waiting(unit, subject);
}

/* ---- the credit as a task ---- */

enum { CREDIT_NEW, CREDIT_READING, CREDIT_CREDITING, CREDIT_LOOKING, CREDIT_DONE };

/* The store cannot say; nothing has happened, unless something has before. */
static void account_fail(struct account_credit *c, enum hx_code code)
{
	task_end(&c->task, c->in_doubt ? HX_OUTCOME_UNKNOWN : code);
}

static void start_crediting(struct account_credit *c, const struct answer *answer)
{
	c->stamp = flow_stamp(answer);
	task_go(&c->task, CREDIT_CREDITING);
}

/* The entry may be its own: one whose answer was lost. */
static void take_entry(struct account_credit *c, const struct db_rows *rows)
{
	int64_t op = db_cell(rows, 0, ENTRY_OP)->i;

	c->was_there = op != c->stamp.op && op != c->op_in_doubt;
	c->balance = db_cell(rows, 0, ENTRY_BALANCE)->i;
	c->amount_there = db_cell(rows, 0, ENTRY_AMOUNT)->i;
	task_end(&c->task, c->amount_there == c->rq->amount ? HX_OK : HX_ALREADY_EXISTS);
}

static void account_take_read(struct account_credit *c, const struct answer *answer)
{
	const struct db_rows *rows = &answer->result->rows[0];

	if (answer->result->verdict != UNIT_WON) {
		account_fail(c, HX_STORE_UNAVAILABLE);
		return;
	}
	if (rows->n == 0) {
		task_end(&c->task, HX_NOT_FOUND);
		return;
	}
	c->subject = db_cell(rows, 0, ENTRY_SUBJECT)->i;
	c->created_at = db_cell(rows, 0, ENTRY_CREATED_AT)->i;
	if (db_cell(rows, 0, ENTRY_AMOUNT)->type != DB_NULL)
		take_entry(c, rows);
	else if (c->task.at == CREDIT_READING)
		start_crediting(c, answer);
	else
		task_end(&c->task,
			 HX_CONCURRENCY_ERROR); /* entries stay: only a store that was put back in time says so */
}

static void credited(struct account_credit *c, const struct answer *answer)
{
	c->balance = db_cell(&answer->result->rows[1], 0, 0)->i;
	task_end(&c->task, HX_OK);
}

static void look_at_entry(struct account_credit *c, const struct answer *answer UNUSED)
{
	task_go(&c->task, CREDIT_LOOKING);
}

static void refused_credit(struct account_credit *c, const struct answer *answer UNUSED)
{
	task_end(&c->task, HX_VALIDATION_ERROR);
}

static void failed_credit(struct account_credit *c, const struct answer *answer)
{
	account_fail(c, flow_failure(answer->result));
}

static void credit_once_more(struct account_credit *c, const struct answer *answer)
{
	if (c->in_doubt) {
		task_end(&c->task, HX_OUTCOME_UNKNOWN);
		return;
	}
	c->in_doubt = true;           /* mutant: credit-in-doubt */
	c->op_in_doubt = c->stamp.op; /* mutant: credit-not-mine */
	start_crediting(c, answer);
}

TASK_VERDICTS(take_credited, struct account_credit, [UNIT_WON] = credited, [UNIT_LOST] = look_at_entry,
	      [UNIT_REFUSED] = refused_credit, [UNIT_FAILED] = failed_credit, [UNIT_UNKNOWN] = credit_once_more);

TASK_UNIT(build_read, struct account_credit, c, account_read_entry(unit, c->rq->workspace, c->rq->name, c->rq->key));
TASK_UNIT(build_credit, struct account_credit, c,
	  account_add_credit(unit, &c->stamp, c->subject, c->rq->amount, c->rq->key));

static const TASK_STATES(struct account_credit) credit_states[] = {
	[CREDIT_NEW] = {"new", .then = CREDIT_READING},
	[CREDIT_READING] = {"reading", account_take_read, build_read},
	[CREDIT_CREDITING] = {"crediting", take_credited, build_credit},
	[CREDIT_LOOKING] = {"looking at the entry", account_take_read, build_read},
	[CREDIT_DONE] = {"done"},
};

static const struct task_shape credit_shape = SHAPE(struct account_credit, NULL,
	PART_WITH(INNER, struct account_credit, stamp, &stamp_noted_shape),
	PART(OP, struct account_credit, op_in_doubt));

TASK_KIND_STAMPED(credit_kind, "account_credit", struct account_credit, credit_states, .shape = &credit_shape);

void account_credit_init(struct account_credit *credit, const struct account_credit_request *rq)
{
	*credit = (struct account_credit){.rq = rq};
	task_init(&credit->task, &credit_kind, /* topic= */ 0);
}
