/*
 * raw_postgres CONNINFO BATCH MOVES : the ceiling on PostgreSQL. Nothing of the engine is in here.
 *
 * CONNECTIONS connections, each on a thread of its own with the subjects that hash to it. A transaction moves
 * BATCH of them in set form, in two trips because the row count must be known before the history is written:
 *
 *   BEGIN · UPDATE … FROM unnest(…) WITH ORDINALITY … RETURNING ord          the ordinals are counted
 *   INSERT INTO hx_history SELECT … FROM unnest(…) · COMMIT
 *
 * Everything is prepared, binary and pipelined. What the engine does besides is left out: no chain, no row locks
 * in a global order, no note of the transaction's id.
 */
#include <arpa/inet.h>
#include <endian.h>
#include <libpq-fe.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>

#include "workload.h"

#define OID_INT8 20
#define OID_TEXT 25
#define OID_BYTEA 17
#define OID_INT8_ARRAY 1016
#define OID_TEXT_ARRAY 1009
#define OID_BYTEA_ARRAY 1001
#define BATCH_MAX 512
#define ARRAY_BYTES (20 + BATCH_MAX * (4 + 40))

static const char sql_update[] =
	"UPDATE hx_subject SET status = u.status, version = hx_subject.version + 1, op = u.op, updated_at = u.at,"
	" seq = seq + 1, head = u.head FROM unnest($1::int8[], $2::text[], $3::text[], $4::int8[], $5::int8[],"
	" $6::int8[], $7::bytea[]) WITH ORDINALITY AS u(id, was, status, version, op, at, head, ord)"
	" WHERE hx_subject.id = u.id AND hx_subject.status = u.was AND hx_subject.version = u.version RETURNING u.ord";
static const Oid types_update[] = {OID_INT8_ARRAY, OID_TEXT_ARRAY, OID_TEXT_ARRAY, OID_INT8_ARRAY,
				   OID_INT8_ARRAY, OID_INT8_ARRAY, OID_BYTEA_ARRAY};

static const char sql_insert[] =
	"INSERT INTO hx_history (subject, seq, from_status, to_status, version, fence, op, node, at, hash)"
	" SELECT u.id, u.version + 1, u.was, u.status, u.version + 1, 0, u.op, $8, u.at, u.head"
	" FROM unnest($1::int8[], $2::text[], $3::text[], $4::int8[], $5::int8[], $6::int8[], $7::bytea[])"
	" AS u(id, was, status, version, op, at, head)";
static const Oid types_insert[] = {OID_INT8_ARRAY, OID_TEXT_ARRAY, OID_TEXT_ARRAY,  OID_INT8_ARRAY,
				   OID_INT8_ARRAY, OID_INT8_ARRAY, OID_BYTEA_ARRAY, OID_TEXT};

/* A one-dimensional array as it travels: dimensions, nulls, type, length, lower bound, then each element. */
struct array {
	char bytes[ARRAY_BYTES];
	size_t n;
};

struct connection {
	pthread_t thread;
	PGconn *conn;
	uint32_t order[SUBJECTS]; /* the subjects that hash here, in the order of the workload */
	size_t order_n, at;
	int64_t version[SUBJECTS];
	struct array arrays[7];
	uint64_t moves, transactions;
};

static struct connection connections[CONNECTIONS];
static _Atomic uint64_t moves_left;
static unsigned long batch;
static double give_up_at;

static _Noreturn void die(PGconn *conn, const char *what)
{
	fprintf(stderr, "raw_postgres, %s: %s\n", what, PQerrorMessage(conn));
	exit(1);
}

static void run_text(PGconn *conn, const char *sql)
{
	PGresult *res = PQexec(conn, sql);

	if (PQresultStatus(res) != PGRES_COMMAND_OK && PQresultStatus(res) != PGRES_TUPLES_OK)
		die(conn, "set up");
	PQclear(res);
}

static PGconn *connect_to(const char *conninfo)
{
	PGconn *conn = PQconnectdb(conninfo);

	if (PQstatus(conn) != CONNECTION_OK)
		die(conn, "connect");
	run_text(conn, "SET client_min_messages = warning");
	return conn;
}

static void set_up(const char *conninfo)
{
	PGconn *conn = connect_to(conninfo);
	char fill[1024];

	snprintf(fill, sizeof fill,
		 "INSERT INTO hx_subject (id, kind, status, version, op, updated_at, seq, head)"
		 " SELECT %lld + i, 1, '%s', 1, %lld, %lld, 1, sha256('') FROM generate_series(0, %d) AS i;"
		 " INSERT INTO hx_history (subject, seq, from_status, to_status, version, fence, op, node, at, hash)"
		 " SELECT id, seq, '', status, version, fence, op, '%s', updated_at, head"
		 " FROM hx_subject",
		 (long long)FIRST_SUBJECT, workload_status[0], (long long)FIRST_SUBJECT, (long long)workload_wall_ms(),
		 SUBJECTS - 1, workload_node);
	run_text(conn, fill);
	PQfinish(conn);
}

/* ---- parameters ---- */

static void put32(struct array *array, uint32_t value)
{
	value = htonl(value);
	memcpy(array->bytes + array->n, &value, sizeof value);
	array->n += sizeof value;
}

static void put(struct array *array, const void *bytes, size_t n)
{
	put32(array, (uint32_t)n);
	memcpy(array->bytes + array->n, bytes, n);
	array->n += n;
}

static void put64(struct array *array, int64_t value)
{
	uint64_t wire = htobe64((uint64_t)value);

	put(array, &wire, sizeof wire);
}

static void start_array(struct array *array, Oid element, size_t length)
{
	array->n = 0;
	put32(array, 1);
	put32(array, 0);
	put32(array, element);
	put32(array, (uint32_t)length);
	put32(array, 1);
}

static void fill_arrays(struct connection *c)
{
	static const Oid elements[7] = {OID_INT8, OID_TEXT, OID_TEXT, OID_INT8, OID_INT8, OID_INT8, OID_BYTEA};
	int64_t now_ms = workload_wall_ms();

	for (int i = 0; i < 7; i++)
		start_array(&c->arrays[i], elements[i], batch);
	for (unsigned long k = 0; k < batch; k++) {
		uint32_t i = c->order[c->at++ % c->order_n];
		int64_t version = ++c->version[i];
		const char *from = workload_status[(version + 1) % 2], *to = workload_status[version % 2];
		int64_t op = FIRST_SUBJECT + (int64_t)(c->moves + k) * CONNECTIONS + (c - connections);
		unsigned char hash[HASH_BYTES] = {0};

		memcpy(hash, &op, sizeof op); /* no two alike, as with real ones */
		put64(&c->arrays[0], FIRST_SUBJECT + i);
		put(&c->arrays[1], from, strlen(from));
		put(&c->arrays[2], to, strlen(to));
		put64(&c->arrays[3], version);
		put64(&c->arrays[4], op);
		put64(&c->arrays[5], now_ms);
		put(&c->arrays[6], hash, sizeof hash);
	}
}

/* ---- trips ---- */

static void send_prepared(struct connection *c, const char *name, int params)
{
	static const int binary[8] = {1, 1, 1, 1, 1, 1, 1, 1};
	const char *values[8] = {[7] = workload_node};
	int lengths[8] = {[7] = (int)strlen(workload_node)};

	for (int i = 0; i < 7; i++) {
		values[i] = c->arrays[i].bytes;
		lengths[i] = (int)c->arrays[i].n;
	}
	if (!PQsendQueryPrepared(c->conn, name, params, values, lengths, binary, 1))
		die(c->conn, name);
}

/* Reads the answer of one statement, and the NULL after it; how many rows it returned. */
static int take(struct connection *c, ExecStatusType wanted)
{
	PGresult *res = PQgetResult(c->conn);
	int rows = PQntuples(res);

	if (PQresultStatus(res) != wanted)
		die(c->conn, "answer");
	PQclear(res);
	if (wanted != PGRES_PIPELINE_SYNC && PQgetResult(c->conn))
		die(c->conn, "end of answer");
	return rows;
}

static void run_transaction(struct connection *c)
{
	fill_arrays(c);
	send_prepared(c, "begin", 0);
	send_prepared(c, "update", 7);
	PQpipelineSync(c->conn);
	take(c, PGRES_COMMAND_OK);
	if (take(c, PGRES_TUPLES_OK) != (int)batch) {
		fprintf(stderr, "raw_postgres: a guard did not hold\n");
		exit(1);
	}
	take(c, PGRES_PIPELINE_SYNC);
	send_prepared(c, "insert", 8);
	send_prepared(c, "commit", 0);
	PQpipelineSync(c->conn);
	take(c, PGRES_COMMAND_OK);
	take(c, PGRES_COMMAND_OK);
	take(c, PGRES_PIPELINE_SYNC);
	c->moves += batch;
	c->transactions++;
}

static void prepare(struct connection *c, const char *name, const char *sql, int n, const Oid *types)
{
	PGresult *res = PQprepare(c->conn, name, sql, n, types);

	if (PQresultStatus(res) != PGRES_COMMAND_OK)
		die(c->conn, name);
	PQclear(res);
}

static void open_connection(struct connection *c, const char *conninfo, const uint32_t order[SUBJECTS])
{
	c->conn = connect_to(conninfo);
	prepare(c, "begin", "BEGIN", 0, NULL);
	prepare(c, "commit", "COMMIT", 0, NULL);
	prepare(c, "update", sql_update, 7, types_update);
	prepare(c, "insert", sql_insert, 8, types_insert);
	PQenterPipelineMode(c->conn);
	for (uint32_t i = 0; i < SUBJECTS; i++)
		if (&connections[workload_share(FIRST_SUBJECT + order[i], CONNECTIONS)] == c)
			c->order[c->order_n++] = order[i];
	if (c->order_n < batch) {
		fprintf(stderr, "raw_postgres: a batch may not be larger than a connection's share of subjects\n");
		exit(2);
	}
}

static bool take_work(void)
{
	uint64_t left = atomic_load(&moves_left);

	while (left > 0 && !atomic_compare_exchange_weak(&moves_left, &left, left > batch ? left - batch : 0))
		;
	return left > 0 && workload_seconds() < give_up_at;
}

static void *run(void *context)
{
	while (take_work())
		run_transaction(context);
	return NULL;
}

static void measure(void)
{
	double begin = workload_seconds();
	uint64_t moves = 0, transactions = 0;

	give_up_at = begin + SECONDS_MAX;
	for (int i = 0; i < CONNECTIONS; i++)
		if (pthread_create(&connections[i].thread, NULL, run, &connections[i]))
			exit(1);
	for (int i = 0; i < CONNECTIONS; i++) {
		pthread_join(connections[i].thread, NULL);
		moves += connections[i].moves;
		transactions += connections[i].transactions;
	}
	workload_print(moves, transactions, workload_seconds() - begin);
}

int main(int argc, char **argv)
{
	uint32_t order[SUBJECTS];

	if (argc != 4) {
		fprintf(stderr, "usage: raw_postgres CONNINFO BATCH MOVES\n");
		return 2;
	}
	batch = workload_number(argv[2], 1, BATCH_MAX);
	moves_left = workload_number(argv[3], 1, 100000000);
	set_up(argv[1]);
	workload_order(order);
	for (int i = 0; i < CONNECTIONS; i++)
		open_connection(&connections[i], argv[1], order);
	measure();
	for (int i = 0; i < CONNECTIONS; i++)
		PQfinish(connections[i].conn);
	return 0;
}
