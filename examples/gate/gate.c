/*
 * gate: a payment that is made once, in a program of your own.
 *
 * The account is a table of the program's, the gate keeps its records in the same SQLite file, and a payment is committed
 * in one transaction with the record of its Idempotency-Key. Kill the program wherever you like: money has moved and the
 * key knows it, or neither. Without arguments it shows what happens to five requests; with a file, a key and an amount
 * it makes that one payment, so that you can try the killing yourself.
 *
 *	cc gate.c -lhapax -lsqlite3
 */
#include <err.h>
#include <hapax.h>
#include <sqlite3.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct hx_error error;

/* What is not the gate's: a table with some money in it. */
static void make_account(const char *file)
{
	sqlite3 *db;

	if (sqlite3_open(file, &db) ||
	    sqlite3_exec(db,
			 "CREATE TABLE IF NOT EXISTS account (name TEXT PRIMARY KEY, cents INTEGER NOT NULL);"
			 "INSERT OR IGNORE INTO account VALUES ('acme', 10000)",
			 NULL, NULL, NULL))
		errx(1, "%s: %s", file, sqlite3_errmsg(db));
	sqlite3_close(db);
}

static long balance(const char *file)
{
	long cents = -1;
	sqlite3_stmt *stmt = NULL;
	sqlite3 *db;

	if (sqlite3_open_v2(file, &db, SQLITE_OPEN_READONLY, NULL) == SQLITE_OK &&
	    sqlite3_prepare_v2(db, "SELECT cents FROM account", -1, &stmt, NULL) == SQLITE_OK &&
	    sqlite3_step(stmt) == SQLITE_ROW)
		cents = (long)sqlite3_column_int64(stmt, 0);
	sqlite3_finalize(stmt);
	sqlite3_close(db);
	return cents;
}

/* The work: one guarded write, and the answer, with the record. Too little money is an answer too, and is kept. */
static enum hx_code pay(struct hx_gate_entry *entry, int64_t cents, struct hx_gate_response *answer)
{
	struct hx_value value = {.type = HX_VALUE_INT, .number = cents};
	struct hx_gate_write debit = {
		.sql = "UPDATE account SET cents = cents - ?1 WHERE name = 'acme' AND cents >= ?1",
		.params_n = 1,
		.params = &value,
		.must_change = 1,
	};
	enum hx_code code;

	*answer = (struct hx_gate_response){HX_SIZE(hx_gate_response), .status = 201, .body = "{\"paid\":true}",
					    .body_bytes = 13};
	code = hx_gate_complete(entry, answer, 1, &debit, &error);
	if (code == HX_INVALID) {
		*answer = (struct hx_gate_response){HX_SIZE(hx_gate_response), .status = 402,
						    .body = "{\"paid\":false}", .body_bytes = 14};
		code = hx_gate_complete(entry, answer, 0, NULL, &error);
	}
	return code;
}

/* What a server would do with POST /payments. */
static int handle(struct hx_gate *gate, const char *key, const char *body)
{
	struct hx_gate_request request = {
		HX_SIZE(hx_gate_request),           .method = "POST", .path = "/payments",        .key = key,
		.content_type = "application/json", .body = body,     .body_bytes = strlen(body),
	};
	struct hx_gate_entry *entry = NULL;
	struct hx_gate_response answer = {HX_SIZE(hx_gate_response)};
	enum hx_code code = hx_gate_begin(gate, &request, &entry, NULL, &error);
	bool replayed = !code && hx_gate_replay(entry);

	if (replayed)
		answer = *hx_gate_replay(entry);
	else if (!code)
		code = pay(entry, strtoll(body, NULL, 10), &answer);
	if (code)
		printf("  %-12s %6s  %d %s\n", key, body, hx_code_http_status(code), hx_code_name(code));
	else
		printf("  %-12s %6s  %d %-16.*s%s\n", key, body, answer.status, (int)answer.body_bytes,
		       (const char *)answer.body, replayed ? "replayed" : "created");
	hx_gate_entry_free(entry);
	return hx_code_exit(code);
}

static int show(struct hx_gate *gate, const char *file)
{
	(void)handle(gate, "invoice-1", "2500");
	(void)handle(gate, "invoice-1", "2500"); /* the client's network was bad */
	(void)handle(gate, "invoice-1", "9900"); /* the client's program is */
	(void)handle(gate, "invoice-2", "9900");
	(void)handle(gate, "invoice-2", "9900");
	printf("\n  there were 10000 cents, and there are %ld\n", balance(file));
	return balance(file) == 7500 ? 0 : 1;
}

int main(int argc, char **argv)
{
	char demo[] = "/tmp/hapax-gate.XXXXXX", url[4096];
	const char *file = argc == 4 ? argv[1] : "shop.db";
	struct hx_gate *gate;
	int status;

	if (argc != 1 && argc != 4)
		errx(2, "usage: gate [FILE KEY CENTS]");
	if (argc == 1 && (!mkdtemp(demo) || chdir(demo)))
		err(1, "%s", demo);
	make_account(file);
	snprintf(url, sizeof url, "sqlite:%s", file);
	if (hx_gate_open(&(struct hx_gate_options){HX_SIZE(hx_gate_options), .store_url = url}, &gate, &error))
		errx(hx_code_exit(error.code), "%s", error.detail);
	status = argc == 4 ? handle(gate, argv[2], argv[3]) : show(gate, file);
	hx_gate_close(gate);
	if (argc == 1)
		(void)(unlink("shop.db"), unlink("shop.db-wal"), unlink("shop.db-shm"), unlink("shop.db.lock"),
		       rmdir(demo)); /* as far as they are there */
	return status;
}
