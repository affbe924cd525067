/*
 * What the files of the PostgreSQL driver share. Nobody else includes this.
 *
 *   postgres.c        a connection's life: set up, begin, commit, roll back, resolve
 *   postgres_connect.c  reaching the server, in a thread beside
 *   postgres_group.c  units of work → trips: locks, phases, set form, savepoints
 *   postgres_blocked.c  who of a group waits for somebody's lock
 *   postgres_trip.c   one round trip: pipeline, prepared statements, waits with a deadline, SQLSTATE → hx_code
 *   postgres_guard.c  what statements of the user's may not reach
 *   postgres_value.c  values ↔ bytes of the wire: parameters, arrays, cells
 *
 * Every wait is bounded: a server that is silent for longer than PG_ANSWER_MS (plus the lock timeout), or than whoever
 * asks can wait (db_patience), counts as lost. `conn` is NULL exactly when the connection is lost; a loss is always reported by the call that met it,
 * which ends the transaction, and the next begin connects again.
 */
#pragma once

#include <libpq-fe.h>

#include "db/driver.h"
#include "db/store_schema.h"

#define PG_ANSWER_MS 30000
#define PG_SCRIPT_MS 600000 /* a migration may build an index */
#define PG_SLOTS 8192       /* prepared statements; at most three quarters are used */
#define PG_SLOTS_KEPT 2048  /* more than that: all are forgotten before the next trip, which prepares what it needs */
#define PG_ARRAY_BYTES_MAX (64u << 20)
#define PG_HISTORY_BYTES 128

/* A statement in one form that this connection has prepared. */
struct pg_slot {
	const struct db_stmt *stmt;
	enum stmt_form form;
	bool prepared;
};

/* See postgres_guard.h. */
#define PG_SETTINGS_BYTES 1024
struct pg_guard {
	char pinned[PG_SETTINGS_BYTES];   /* when the session had been set up */
	char own_role[64];                /* its role then, as the setting has it: "none" */
	char settings[PG_SETTINGS_BYTES]; /* before a statement of the user's */
	int64_t blocks;
	bool met;    /* this transaction, or the one before, had such a statement */
	bool spoilt; /* the session is to be given up */
};

struct pg {
	struct db db;
	PGconn *conn;
	char *url; /* without ?schema= */
	char schema[STORE_SCHEMA_BYTES];
	char *password; /* out of the url, so that no error ever repeats it; may be NULL */
	int64_t lock_timeout_ms;
	bool read_only;
	bool stay_unchecked;
	char role[64]; /* of statements of the user's; "": the session's own */
	struct pg_guard guard;
	bool cancelled;                   /* the statement under way, because the program ends */
	struct mono_time connect_after;   /* no new attempt before this moment */
	struct pg_connecting *connecting; /* the attempt that is under way; NULL: none */

	bool wrote;                         /* this transaction may have changed something */
	bool foreign;                       /* it has statements of the user's, whatever these do */
	int64_t xid;                        /* of this transaction, 0: not asked */
	char xid_history[PG_HISTORY_BYTES]; /* the history that the xid belongs to */
	char history[PG_HISTORY_BYTES];     /* of the server we are connected to: see postgres.c */

	struct strbuf arrays[STMT_PARAMS_MAX];
	size_t slots_used;
	struct pg_slot slots[PG_SLOTS];
};

/* ---- postgres_value.c ---- */

#define PG_VALUE_BYTES_MAX (64u << 20)

/* The type of a parameter on the wire: of one value, or of an array of them; 0: for the server to infer. */
Oid pg_type(char letter, bool array);
/* Parameters of the row form. `numbers` holds what values[] points to for numbers. */
struct pg_params {
	const char *values[STMT_PARAMS_MAX];
	int lengths[STMT_PARAMS_MAX];
	int formats[STMT_PARAMS_MAX];
	char numbers[STMT_PARAMS_MAX][24];
};
/* HX_TOO_LARGE, or HX_DATA_ERROR for what PostgreSQL cannot hold. Copies only go into the arena. */
enum hx_code pg_params_set(struct pg_params *p, unsigned i, char letter, const struct db_value *value,
			   struct arena *arena, struct hx_error *err);
/* A one-dimensional array: start, add each element, end. A ceiling passed shows in out->failed. */
void pg_array_start(struct strbuf *out, char letter);
void pg_array_add(struct strbuf *out, const struct db_value *value);
void pg_array_end(struct strbuf *out, size_t n);
/* HX_INTERNAL unless the columns from `skip` on are those that the statement declares. */
enum hx_code pg_check_columns(const PGresult *res, const struct db_stmt *stmt, int skip, struct hx_error *err);
int64_t pg_cell_int(const PGresult *res, int row, int column);
/* Bytes are copied into the arena; a full arena shows in arena->failed. */
struct db_value pg_cell(const PGresult *res, int row, int column, char letter, struct arena *arena);

/* ---- postgres_trip.c ---- */

/* Takes one answer in. Called only for statements that succeeded. */
typedef enum hx_code pg_take(void *context, const struct db_stmt *stmt, const PGresult *res, struct hx_error *err);

struct pg_sent {
	struct pg_sent *next;
	struct pg_slot *slot;
	bool preparing; /* the statement's Parse; otherwise its execution */
	pg_take *take;
	void *context;
};

/*
 * One trip: start, send…, finish. After the first failure the rest is skipped and finish reports it, having
 * read the pipeline to its end. The transaction is then still open and failed (or the connection is lost).
 */
struct pg_trip {
	struct pg *pg;
	struct arena *arena; /* holds the list of what was sent */
	struct hx_error *err;
	enum hx_code code;
	struct pg_sent *first, **last;
};
void pg_trip_start(struct pg_trip *trip, struct pg *pg, struct arena *arena, struct hx_error *err);
void pg_trip_row(struct pg_trip *trip, const struct db_stmt *stmt, const struct db_value *params, pg_take *take,
		 void *context);
/* The set form with the arrays that stand in pg->arrays. */
void pg_trip_set(struct pg_trip *trip, const struct db_stmt *stmt, pg_take *take, void *context);
enum hx_code pg_trip_finish(struct pg_trip *trip);
/* Of a transaction with a limit: what is left of it, at least 1. */
int64_t pg_limit_left_ms(struct pg *pg);

/* Text without parameters, outside of a pipeline. The last result goes to *ret_res (if not NULL), to be cleared. */
enum hx_code pg_run_text(struct pg *pg, const char *sql, int64_t wait_ms, PGresult **ret_res, struct hx_error *err);
/* Looks at an idle connection without waiting. False: it has gone, and is given up. */
bool pg_still_there(struct pg *pg);
/* Gives the connection up. */
void pg_lose(struct pg *pg);
enum hx_code pg_lost(struct pg *pg, struct hx_error *err, const char *words);
/* Maps a failed result, with the server's words. A connection that cannot be used any more is given up. */
enum hx_code pg_failed(struct pg *pg, const PGresult *res, const char *what, struct hx_error *err);

/* ---- postgres_connect.c ---- */

/* Sets pg->conn, to a connection or to one that says why there is none. False: it takes longer than patience lasts. */
bool pg_connect(struct pg *pg);
/* What is under way is not wanted any more. */
void pg_connect_abandon(struct pg *pg);

/* ---- postgres_group.c ---- */

enum hx_code pg_execute(struct db *db, struct unit *const units[], size_t n, struct unit_result results[],
			struct arena *arena, struct hx_error *err);
/* ---- postgres_blocked.c ---- */
void pg_find_blocked(struct db *db, struct unit *const units[], size_t n, bool ret_blocked[], struct arena *arena);
/* ---- postgres.c ---- */
void pg_rollback(struct db *db);
