/*
 * raw_http ADDRESS:PORT echo                HTTP, through another thread, and back: the ceiling of a replay
 * raw_http ADDRESS:PORT record|entity FILE  HTTP, group commit, reply: the ceiling of a guarded request
 *
 * Nothing of the engine is in here. One thread speaks HTTP on epoll, one carries the requests out: it takes all that
 * have come, writes a gate record for each in one transaction (with `entity` also the three rows that make an entity),
 * syncs, and hands them back; what came meanwhile is the next group. FILE is a
 * store that `hapax db migrate` has made.
 *
 * Prints "ready" and the port when it listens; ends with SIGTERM.
 *
 *     epoll thread ── arrived (a stack) ──▶ worker: BEGIN · INSERT … × n · COMMIT
 *                  ◀─ finished (a stack) ──┘
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <sqlite3.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "workload.h"

#define REQUEST_BYTES 8192

static const char reply[] =
	"HTTP/1.1 201 Created\r\nContent-Type: application/json\r\nIdempotency-Status: created\r\n"
	"Idempotency-Replayed: true\r\nDate: Sun, 06 Nov 1994 08:49:37 GMT\r\nContent-Length: 123\r\n\r\n"
	"{\"workflow\":\"bench\",\"id\":\"order-1000000\",\"status\":\"open\",\"version\":1,\"data\":{},"
	"\"updatedAt\":\"2026-01-01T00:00:00.000Z\"}     ";

struct request {
	int fd;
	char bytes[REQUEST_BYTES];
	size_t n;
	struct request *next;
};

static _Atomic(struct request *) arrived, finished;
static int arrived_event, finished_event;
static sqlite3 *db;
static sqlite3_stmt *stmt_begin, *stmt_commit, *stmt_record, *stmt_entity[3];
static bool with_entity;
static uint64_t made;

static _Noreturn void die(const char *what, const char *words)
{
	fprintf(stderr, "raw_http, %s: %s\n", what, words);
	exit(1);
}

/* ---- handing over ---- */

static void push(_Atomic(struct request *) *stack, int event, struct request *first, struct request *last)
{
	struct request *before = atomic_load(stack);

	do
		last->next = before;
	while (!atomic_compare_exchange_weak(stack, &before, first));
	if (!before)
		(void)eventfd_write(event, 1);
}

static struct request *take(_Atomic(struct request *) *stack, int event)
{
	struct request *list;
	eventfd_t ignored;

	while (!(list = atomic_exchange(stack, NULL)))
		(void)eventfd_read(event, &ignored);
	return list;
}

/* ---- the store ---- */

static void prepare(const char *sql, sqlite3_stmt **ret)
{
	if (sqlite3_prepare_v3(db, sql, -1, SQLITE_PREPARE_PERSISTENT, ret, NULL))
		die(sql, sqlite3_errmsg(db));
}

static void run(sqlite3_stmt *stmt)
{
	if (sqlite3_step(stmt) != SQLITE_DONE)
		die(sqlite3_sql(stmt), sqlite3_errmsg(db));
	sqlite3_reset(stmt);
}

static void open_store(const char *file)
{
	if (sqlite3_open(file, &db) ||
	    sqlite3_exec(db,
			 "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL; PRAGMA wal_autocheckpoint=0;"
			 "PRAGMA cache_size=-262144; PRAGMA locking_mode=NORMAL",
			 NULL, NULL, NULL))
		die(file, sqlite3_errmsg(db));
	prepare("BEGIN IMMEDIATE", &stmt_begin);
	prepare("COMMIT", &stmt_commit);
	prepare("INSERT INTO hx_gate_record (key, status, token, fingerprint, held, created_at, until, expires_at, sweep_at,"
		" key_text, endpoint, response) VALUES (?1, 2, ?2, ?1, 0, ?3, ?3, ?3 + 86400000, ?3 + 86400000,"
		" CAST('bench-1000000' AS BLOB), CAST('POST /api/v1/entities/bench' AS BLOB), ?4) ON CONFLICT DO NOTHING",
		&stmt_record);
	prepare("INSERT INTO hx_subject (id, kind, status, version, op, fence, updated_at, seq, head)"
		" VALUES (?1, 1, 'open', 1, ?1, 0, ?2, 1, ?3)",
		&stmt_entity[0]);
	prepare("INSERT INTO hx_history (subject, seq, from_status, to_status, version, fence, op, node, at, hash)"
		" VALUES (?1, 1, '', 'open', 1, 0, ?1, 'bench-node-1', ?2, ?3)",
		&stmt_entity[1]);
	prepare("INSERT INTO hx_entity (subject, workspace, workflow, name, data) VALUES (?1, 'default', 'bench',"
		" 'order-' || ?1, '{}')",
		&stmt_entity[2]);
}

/* Spread like a hash, different each time. */
static void fill_key(uint64_t number, uint64_t key[4])
{
	for (int i = 0; i < 4; i++) {
		uint64_t x = (number * 4 + (uint64_t)i) * 0x9e3779b97f4a7c15u;

		x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
		key[i] = x ^ x >> 31;
	}
}

static void write_rows(int64_t now_ms)
{
	uint64_t key[4];
	int64_t id = FIRST_SUBJECT + (int64_t)++made;

	fill_key(made, key);
	sqlite3_bind_blob(stmt_record, 1, key, sizeof key, SQLITE_STATIC);
	sqlite3_bind_blob(stmt_record, 2, key, 16, SQLITE_STATIC);
	sqlite3_bind_int64(stmt_record, 3, now_ms);
	sqlite3_bind_blob(stmt_record, 4, reply, 200, SQLITE_STATIC);
	run(stmt_record);
	for (int i = 0; i < 3 && with_entity; i++) {
		sqlite3_bind_int64(stmt_entity[i], 1, id);
		if (i < 2) {
			sqlite3_bind_int64(stmt_entity[i], 2, now_ms);
			sqlite3_bind_blob(stmt_entity[i], 3, key, sizeof key, SQLITE_STATIC);
		}
		run(stmt_entity[i]);
	}
}

static void *work(void *unused)
{
	for (;;) {
		struct request *list = take(&arrived, arrived_event), *last = list;
		int64_t now_ms = workload_wall_ms();

		if (db)
			run(stmt_begin);
		for (struct request *r = list; r; r = r->next) {
			if (db)
				write_rows(now_ms);
			last = r;
		}
		if (db)
			run(stmt_commit);
		push(&finished, finished_event, list, last);
	}
	return unused;
}

/* ---- HTTP ---- */

static bool is_complete(struct request *r)
{
	char *end, *field;

	r->bytes[r->n] = '\0';
	end = strstr(r->bytes, "\r\n\r\n");
	if (!end)
		return false;
	field = strcasestr(r->bytes, "\r\ncontent-length:");
	return r->n >= (size_t)(end + 4 - r->bytes) + (field && field < end ? strtoul(field + 17, NULL, 10) : 0);
}

static void receive(struct request *r)
{
	ssize_t n = recv(r->fd, r->bytes + r->n, REQUEST_BYTES - 1 - r->n, 0);

	if (n < 0 && errno == EAGAIN)
		return;
	if (n <= 0) {
		close(r->fd);
		free(r);
		return;
	}
	r->n += (size_t)n;
	if (is_complete(r))
		push(&arrived, arrived_event, r, r);
}

static void answer_all(void)
{
	eventfd_t ignored;

	(void)eventfd_read(finished_event, &ignored);
	for (struct request *r = atomic_exchange(&finished, NULL), *next; r; r = next) {
		next = r->next;
		r->n = 0;
		if (send(r->fd, reply, sizeof reply - 1, MSG_NOSIGNAL) < 0 && errno != EPIPE && errno != ECONNRESET)
			die("send", strerror(errno));
	}
}

static void take_in(int epoll_fd, int listener)
{
	int fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC), one = 1;
	struct request *r = fd < 0 ? NULL : calloc(1, sizeof *r);
	struct epoll_event event = {.events = EPOLLIN, .data.ptr = r};

	if (!r)
		return;
	r->fd = fd;
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
	epoll_ctl(epoll_fd, EPOLL_CTL_ADD, fd, &event);
}

static _Noreturn void serve(int listener)
{
	static char listening, waking;
	int epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	struct epoll_event on_listener = {.events = EPOLLIN, .data.ptr = &listening},
			   on_finished = {.events = EPOLLIN, .data.ptr = &waking}, events[256];

	epoll_ctl(epoll_fd, EPOLL_CTL_ADD, listener, &on_listener);
	epoll_ctl(epoll_fd, EPOLL_CTL_ADD, finished_event, &on_finished);
	for (;;) {
		int n = epoll_wait(epoll_fd, events, 256, -1);

		for (int i = 0; i < n; i++) {
			if (events[i].data.ptr == &listening)
				take_in(epoll_fd, listener);
			else if (events[i].data.ptr == &waking)
				answer_all();
			else
				receive(events[i].data.ptr);
		}
	}
}

static int listen_at(char *where)
{
	char *port = strchr(where, ':');
	struct sockaddr_in address = {.sin_family = AF_INET};
	socklen_t size = sizeof address;
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (!port)
		die(where, "ADDRESS:PORT is needed");
	*port++ = '\0';
	inet_pton(AF_INET, where, &address.sin_addr);
	address.sin_port = htons((uint16_t)workload_number(port, 0, 65535));
	if (bind(fd, (struct sockaddr *)&address, sizeof address) || listen(fd, 1024) ||
	    getsockname(fd, (struct sockaddr *)&address, &size))
		die("listen", strerror(errno));
	printf("ready http://127.0.0.1:%d\n", ntohs(address.sin_port));
	fflush(stdout);
	return fd;
}

int main(int argc, char **argv)
{
	pthread_t worker;

	if (argc < 3 || (strcmp(argv[2], "echo") != 0 && argc != 4)) {
		fprintf(stderr, "usage: raw_http ADDRESS:PORT echo|record|entity [FILE]\n");
		return 2;
	}
	arrived_event = eventfd(0, EFD_CLOEXEC);
	finished_event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	with_entity = strcmp(argv[2], "entity") == 0;
	if (strcmp(argv[2], "echo") != 0)
		open_store(argv[3]);
	if (pthread_create(&worker, NULL, work, NULL))
		return 1;
	serve(listen_at(argv[1]));
}
