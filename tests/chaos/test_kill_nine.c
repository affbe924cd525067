/*
 * kill -9 of a writing process, KILLS times, on one SQLite file that lives through all of it.
 *
 *   start kill_writer ─▶ wait until it has acknowledged some ─▶ (aimed: and is inside of a group) ─▶ SIGKILL
 *          ▲                                                                                          │
 *          └── every subject is whole, every acknowledged transition is in its history ◀── reopen ◀───┘
 *
 * The moment of death is what the dead process's page says after it is dead, not what the aim was.
 */
#include <fcntl.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "chaos/kill_page.h"
#include "db/migrate.h"
#include "support/audit.h"
#include "support/soak.h"
#include "support/store.h"
#include "support/subjects.h"

#define KILLS soak_or(200, 80)
#define KILLS_INSIDE_MIN (KILLS / 4)
#define ACKS_BEFORE_KILL_MAX 200
#define WAIT_MS 60000

/* The ops that were acknowledged for one subject, by version; 0: that version was not acknowledged. */
struct acked {
	int64_t *op;
	size_t capacity;
	int64_t n;
	int64_t found; /* by the audit under way */
};

struct chaos {
	struct store *store;
	char acks_path[300], page_path[300];
	struct kill_page *page;
	FILE *acks; /* read after the writer, to the last whole line */
	struct acked acked[KILL_SUBJECTS];
	struct acked *audited;
	int64_t rows; /* of all histories, as of the last audit */
	uint64_t random;
};

static uint64_t draw(struct chaos *c, uint64_t below)
{
	c->random ^= c->random << 13;
	c->random ^= c->random >> 7;
	c->random ^= c->random << 17;
	return (c->random >> 16) % below;
}

/* ---- the store between two lives of its writer ---- */

static struct db *reopen(const struct chaos *c)
{
	struct db_options options = {.url = c->store->url, .clock = clock_system(), .exclusive = true};
	struct hx_error err = {0};
	struct db *db = NULL;

	if (db_open(&options, &db, &err) || migrate_check(db, &err))
		fail_msg("reopen: %s", err.detail);
	return db;
}

static void create_subjects(struct db *db)
{
	struct arena arena;
	struct hx_error err = {0};

	arena_init(&arena, 1u << 20);
	for (int64_t i = 0; i < KILL_SUBJECTS; i++) {
		int64_t subject = KILL_FIRST_SUBJECT + i;
		struct stamp stamp = {.op = subject, .at = clock_wall(clock_system()), .node = "test_kill_nine"};
		struct unit unit;
		struct unit_result result;

		unit_init(&unit, stamp.op);
		subject_create(&unit, &stamp, subject, KILL_KIND, KILL_OPEN);
		if (db_run_unit(db, &unit, &result, &arena, &err) || result.verdict != UNIT_WON)
			fail_msg("create: %s", err.detail);
	}
	arena_release(&arena);
}

static void see(void *context, const struct history_row *row)
{
	struct acked *acked = ((struct chaos *)context)->audited;
	int64_t op = (size_t)row->version < acked->capacity ? acked->op[row->version] : 0;

	if (op && op != row->op)
		fail_msg("subject %lld: version %lld was acknowledged to op %lld and is now op %lld's",
			 (long long)row->subject, (long long)row->version, (long long)op, (long long)row->op);
	acked->found += op != 0;
}

static void audit_store(struct chaos *c)
{
	struct audit audit = {.db = reopen(c), .claimed = KILL_WORKING, .see = see, .context = c};
	struct hx_error err = {0};

	arena_init(&audit.arena, AUDIT_BYTES_MAX);
	c->rows = 0;
	for (int64_t i = 0; i < KILL_SUBJECTS; i++) {
		int64_t rows;

		c->audited = &c->acked[i];
		c->audited->found = 0;
		rows = audit_subject(&audit, KILL_FIRST_SUBJECT + i, &err);
		if (rows < 0)
			fail_msg("half there: %s", err.detail);
		if (c->audited->found != c->audited->n)
			fail_msg("subject %lld: %lld transitions were acknowledged, %lld of them are there",
				 (long long)(KILL_FIRST_SUBJECT + i), (long long)c->audited->n,
				 (long long)c->audited->found);
		c->rows += rows;
	}
	arena_release(&audit.arena);
	db_close(audit.db);
}

/* SQLite's own opinion of the file, which has seen every kill. */
static void check_integrity(const struct chaos *c)
{
	static const struct db_stmt stmt = {
		.name = "integrity", .sql = "SELECT integrity_check FROM pragma_integrity_check", .in = "", .out = "t"};
	struct db *db = reopen(c);
	struct arena arena;
	struct unit unit;
	struct unit_result result;
	struct hx_error err = {0};

	arena_init(&arena, 1u << 20);
	unit_init(&unit, /* op= */ 0);
	unit_add(&unit, UNIT_ANY, &stmt, 0, NULL);
	assert_int_equal(db_run_unit(db, &unit, &result, &arena, &err), HX_OK);
	if (!slice_is(db_cell(&result.rows[0], 0, 0)->s, "ok"))
		fail_msg("integrity: %.*s", SLICE_ARGS(db_cell(&result.rows[0], 0, 0)->s));
	arena_release(&arena);
	db_close(db);
}

/* ---- acknowledgements ---- */

static void note_ack(struct chaos *c, int64_t subject, int64_t version, int64_t op)
{
	struct acked *acked = &c->acked[subject - KILL_FIRST_SUBJECT];

	assert_in_range(subject, KILL_FIRST_SUBJECT, KILL_FIRST_SUBJECT + KILL_SUBJECTS - 1);
	assert_true(version > 1 && op > 0);
	if ((size_t)version >= acked->capacity) {
		size_t capacity = 2 * (size_t)version;

		acked->op = realloc(acked->op, capacity * sizeof *acked->op);
		assert_non_null(acked->op);
		memset(acked->op + acked->capacity, 0, (capacity - acked->capacity) * sizeof *acked->op);
		acked->capacity = capacity;
	}
	if (acked->op[version])
		fail_msg("subject %lld: version %lld was acknowledged twice", (long long)subject, (long long)version);
	acked->op[version] = op;
	acked->n++;
}

/* Takes in what was acknowledged since the last time. A line without its end was being written: no ack yet. */
static void read_acks(struct chaos *c)
{
	char line[128];
	long long subject, version, op;
	long end = ftell(c->acks);

	clearerr(c->acks);
	while (fgets(line, sizeof line, c->acks) && strchr(line, '\n')) {
		assert_int_equal(sscanf(line, "%lld %lld %lld", &subject, &version, &op), 3);
		note_ack(c, subject, version, op);
		end = ftell(c->acks);
	}
	assert_int_equal(truncate(c->acks_path, end), 0);
	assert_int_equal(fseek(c->acks, end, SEEK_SET), 0);
}

/* ---- one life of the writer ---- */

static pid_t start_writer(const struct chaos *c, int life)
{
	const char *build = getenv("HAPAX_BUILD");
	char program[512], seed[16];
	pid_t parent = getpid(), child;

	snprintf(program, sizeof program, "%s/tests/chaos/kill_writer", build && *build ? build : "build");
	snprintf(seed, sizeof seed, "%d", life + 1);
	child = fork();
	assert_true(child >= 0);
	if (child == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (getppid() == parent)
			execl(program, program, c->store->url, c->acks_path, c->page_path, seed, (char *)NULL);
		_exit(127);
	}
	return child;
}

static bool has_acked(const struct kill_page *page, uint64_t n)
{
	return atomic_load(&page->acks) >= n;
}

static bool is_in_phase(const struct kill_page *page, uint64_t phase)
{
	return atomic_load(&page->phase) == (int)phase;
}

/*
 * Waits for a condition of the writer, which must not end by itself meanwhile. It looks without a pause, since the
 * phases last microseconds; it gives way only now and then, for machines with one processor.
 */
static void await(const struct chaos *c, pid_t writer, bool (*holds)(const struct kill_page *, uint64_t), uint64_t arg,
		  const char *what)
{
	struct mono_time deadline = mono_add_ms(clock_mono(clock_system()), WAIT_MS);

	for (unsigned turn = 1; !holds(c->page, arg); turn++) {
		if (turn % 16384 == 0) {
			if (waitpid(writer, NULL, WNOHANG) != 0)
				fail_msg("the writer ended by itself");
			if (clock_mono(clock_system()).ns > deadline.ns)
				fail_msg("waited %d ms until the writer %s", WAIT_MS, what);
			sched_yield();
		}
	}
}

/* Three of four kills are aimed into a group: after its first row, or into its commit. True: it died there. */
static bool live_and_die(struct chaos *c, int life)
{
	pid_t writer;
	int status, phase;

	atomic_store(&c->page->acks, 0);
	atomic_store(&c->page->phase, KILL_QUIET);
	writer = start_writer(c, life);
	await(c, writer, has_acked, 1 + draw(c, ACKS_BEFORE_KILL_MAX), "acknowledges some");
	if (life % 4 != 0)
		await(c, writer, is_in_phase, life % 2 ? KILL_WROTE : KILL_COMMITTING, "is inside of a batch");
	assert_int_equal(kill(writer, SIGKILL), 0);
	assert_int_equal(waitpid(writer, &status, 0), writer);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
	phase = atomic_load(&c->page->phase);
	return phase == KILL_WROTE || phase == KILL_COMMITTING;
}

static void nothing_acknowledged_is_lost_and_nothing_is_half_there(void **state)
{
	struct chaos *c = *state;
	int inside = 0;
	int64_t acked = 0;

	for (int life = 0; life < KILLS; life++) {
		inside += live_and_die(c, life);
		read_acks(c);
		audit_store(c);
	}
	check_integrity(c);
	for (int i = 0; i < KILL_SUBJECTS; i++)
		acked += c->acked[i].n;
	printf("# kill -9: %d kills, %d between first write and acknowledgement, %lld acknowledged transitions,"
	       " none lost, none half there (%lld history rows)\n",
	       KILLS, inside, (long long)acked, (long long)c->rows);
	assert_true(inside >= KILLS_INSIDE_MIN);
}

/* ---- set up ---- */

static void make_file(const char *path, size_t bytes)
{
	int fd = open(path, O_RDWR | O_CREAT | O_EXCL, 0600);

	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, (off_t)bytes), 0);
	close(fd);
}

static int set_up(void **state)
{
	struct chaos *c = calloc(1, sizeof *c);
	struct db *db;
	int fd;

	assert_non_null(c);
	c->random = 0x9e3779b97f4a7c15u;
	c->store = store_new(STORE_SQLITE_FILE);
	snprintf(c->acks_path, sizeof c->acks_path, "%s/acks", c->store->dir);
	snprintf(c->page_path, sizeof c->page_path, "%s/page", c->store->dir);
	make_file(c->acks_path, 0);
	make_file(c->page_path, sizeof *c->page);
	c->acks = fopen(c->acks_path, "r");
	fd = open(c->page_path, O_RDWR);
	c->page = mmap(NULL, sizeof *c->page, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	close(fd);
	assert_true(c->acks && c->page != MAP_FAILED);
	db = store_open_migrated(c->store);
	create_subjects(db);
	db_close(db);
	*state = c;
	return 0;
}

static int tear_down(void **state)
{
	struct chaos *c = *state;

	fclose(c->acks);
	munmap(c->page, sizeof *c->page);
	unlink(c->acks_path);
	unlink(c->page_path);
	store_free(c->store);
	for (int i = 0; i < KILL_SUBJECTS; i++)
		free(c->acked[i].op);
	free(c);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(nothing_acknowledged_is_lost_and_nothing_is_half_there, set_up,
						tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
