/*
 * Accounts: integer balances of the smallest unit, and a ledger that says how each came about.
 *
 * An entry and the change of the balance are lines of one unit, and the balance is changed inside the store (balance + n):
 * nobody reads it to write it. Every unit that changes a balance touches the account's subject, so PostgreSQL has locked it,
 * in the one order of all locks, before its first line runs; whatever the lines read about the account is therefore true
 * when they write. SQLite has one writer.
 *
 * Invariants (the simulator checks each of them on every edge):
 *  A1  balance = the sum of the ledger's amounts; it is never negative.
 *  A2  A key has one entry in an account, ever. seq has no gaps; balance of an entry = that of the one before + amount.
 *
 * The account's subject stays in its first status for ever, so its history is one row: the ledger is what tells.
 */
#pragma once

#include "flow/subject.h"
#include "task/task.h"

#define ACCOUNT_AMOUNT_MAX INT64_C(1000000000000000000) /* of one entry */
#define ACCOUNT_BALANCE_MAX ACCOUNT_AMOUNT_MAX          /* beyond it nobody credits; what is given back still fits */
#define ACCOUNT_OWN_KEY '/'                             /* how keys that the engine makes begin; users' may not */

int64_t account_kind(void);

/* ---- units ---- */

/* A new one, with its opening entry. LOST: the name is taken. */
void account_create(struct unit *unit, const struct stamp *stamp, struct slice workspace, struct slice name,
		    int64_t subject, int64_t balance);
/* Row: subject, balance, seq, created_at. */
void account_read(struct unit *unit, struct slice workspace, struct slice name);
/* By name after `after`. Row: name, balance, created_at. */
void account_list(struct unit *unit, struct slice workspace, struct slice after, int64_t limit);
/* By seq after `after`. Row: seq, amount, key, reason, balance, at. */
void account_read_ledger(struct unit *unit, struct slice workspace, struct slice name, int64_t after, int64_t limit);
/* Row: subject, balance, created_at, amount and op of the key's entry (NULL: the key is free). No row: no such account. */
void account_read_entry(struct unit *unit, struct slice workspace, struct slice name, struct slice key);
/*
 * A person's credit, of 1 to ACCOUNT_AMOUNT_MAX. LOST: the key has an entry already. REFUSED: the balance would pass
 * ACCOUNT_BALANCE_MAX. Row of line 1: the balance after it. Wakes whoever waits for money.
 */
void account_add_credit(struct unit *unit, const struct stamp *stamp, int64_t subject, int64_t amount,
			struct slice key);

/* ---- the credit as a task ---- */

/*
 *   START ─▶ READING ─┬─ the key is free ─▶ CREDITING ─┬─ won ─────▶ HX_OK
 *                     │                      ▲      │  ├─ refused ─▶ HX_VALIDATION_ERROR: the balance would pass its limit
 *                     │                      └──────┘  └─ lost ────▶ LOOKING ─┐
 *                     │              unknown, the first time                  │
 *                     ├─ the key has an entry ◀───────────────────────────────┘
 *                     │    of this amount: HX_OK, and nothing happens; of another: HX_ALREADY_EXISTS
 *                     └─ no account: HX_NOT_FOUND
 *
 * A credit whose commit was lost is simply asked for again: it holds the account still, so the first one has ended, and the
 * key tells which of the two has landed.
 */
struct account_credit_request {
	struct slice workspace, name, key;
	int64_t amount;
};

struct account_credit {
	struct task task;
	const struct account_credit_request *rq;
	int64_t balance, created_at; /* HX_OK: the account as it is then */
	bool was_there;              /* HX_OK: by another one's doing; nothing has happened now */
	int64_t amount_there;        /* HX_ALREADY_EXISTS: what the key stands for */
	/* private */
	struct stamp stamp;
	int64_t subject;
	bool in_doubt;       /* a commit of it may have landed */
	int64_t op_in_doubt; /* that commit's */
};

/* The request is borrowed until the end. */
void account_credit_init(struct account_credit *credit, const struct account_credit_request *rq);
