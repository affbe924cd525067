/*
 * once: fifty people press the same button at the same moment.
 *
 * Each press fires one step (src/flow/entity_step.h) of one invoice, and all are in the lane at once. The action that would
 * charge the card counts how often it ran, and ends when all others were answered. Both happen in the lane's thread.
 */
#include <err.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "flow/entity_step.h"
#include "task/lane.h"

enum { PRESSES = 50, INVOICE = 7411 };
static const char definition[] =
	"{\"workflow\":\"invoice\",\"kind\":\"entity\",\"status_types\":[\"open\",\"charging\",\"paid\"],"
	"\"initial_status\":\"open\",\"actions\":{\"Charge\":{\"kind\":\"http\",\"url\":\"http://127.0.0.1/charge\"}},"
	"\"steps\":[{\"step_id\":1,\"step_key\":\"pay\",\"status\":\"open\",\"successful_state\":\"paid\","
	"\"claim_state\":[\"charging\",\"open\"],\"action\":\"Charge\"}]}";
static const struct db_stmt stmt_history = {
	.name = "once_history",
	.sql = "SELECT seq, from_status, to_status, version, fence, op, node, at, hash FROM hx_history WHERE subject = ?1 ORDER BY seq",
	.in = "i",
	.out = "ittiiitib",
};
static struct step_request pay = {.step_key = {"pay", 3}, .requester = {"demo", 4}, .lease_ms = 5000};
static int effects, told[HX_CODE_COUNT], told_n;
static struct ticket charging;
static struct hx_error error;

static void must(enum hx_code code)
{
	if (code)
		errx(hx_code_exit(code), "%s: %s", hx_code_text(code), error.detail);
}

static void act(struct act_port *port, const struct act_call *call, struct ticket ticket)
{
	(void)port, (void)call;
	effects++; /* here the money would move */
	charging = ticket;
}

static void hear(struct seat *seat, enum hx_code code)
{
	(void)seat;
	told[code]++;
	if (++told_n == PRESSES - 1)
		lane_answer(charging, ACT_OK, slice_str("{}"));
}

static void read_definition(struct arena *arena)
{
	const struct workflow *workflow;
	struct findings findings;

	findings_init(&findings, arena);
	workflow_parse("invoice.json", slice_str(definition), arena, &findings, &workflow);
	if (!workflow)
		errx(1, "%s", findings.first->text);
	pay.input = json_trust(slice_str("{}"));
	pay.ref = (struct entity_ref){slice_str("default"),
				      entity_machine_new(workflow, /* version= */ 1, /* table= */ NULL, arena),
				      slice_str("inv-1")};
}

static void press_all(struct lane *lane, struct arena *arena)
{
	static struct entity_step steps[PRESSES];
	static struct seat seats[PRESSES];

	for (int i = 0; i < PRESSES; i++) {
		entity_step_init(&steps[i], &pay, arena); /* one arena for all: they are in one lane */
		seats[i] = (struct seat){.task = &steps[i].task, .done = hear};
		must(lane_submit(lane, &seats[i]));
	}
	lane_stop(lane, /* drain_ms= */ 60000); /* returns when everybody has been told */
}

/* Prints the history and follows its chain: each hash covers its row and the hash before it. */
static bool show_history(const struct db_rows *rows)
{
	char at[WALL_TIME_TEXT_BYTES], hex[2 * SHA256_BYTES + 1];
	uint8_t head[SHA256_BYTES];
	bool holds = true;

	printf("\n  seq  at                        from      to        version  fence  hash\n");
	for (size_t i = 0; i < rows->n; i++) {
		const struct db_value *c = db_cell(rows, i, 0);
		struct history_row row = {INVOICE, c[0].i, c[1].s, c[2].s, c[3].i, c[4].i, c[5].i, c[7].i, c[6].s};

		history_link(&row, slice_of(head, i ? sizeof head : 0), head);
		sha256_hex(head, hex);
		wall_time_format((struct wall_time){row.at}, at);
		printf("  %3d  %s  %-8.*s  %-8.*s  %7d  %5d  %.12s\n", (int)row.seq, at, SLICE_ARGS(row.from),
		       SLICE_ARGS(row.to), (int)row.version, (int)row.fence, hex);
		holds = holds && slice_eq(c[8].s, slice_of(head, sizeof head));
	}
	return holds;
}

int main(void)
{
	char dir[] = "/tmp/hapax-once.XXXXXX";
	struct act_port outside = {.start = act};
	struct lane_options options = {.db = {.url = "sqlite:once.db", .clock = clock_system()}, .migrate = true};
	struct unit_result result;
	struct arena arena;
	struct unit unit;
	struct lane *lane;
	struct db *db;

	if (!mkdtemp(dir) || chdir(dir))
		err(1, "%s", dir);
	options.clock = clock_system(), options.node = "demo", options.seats_max = PRESSES;
	options.act = &outside, options.renew = subject_heartbeat;
	must(lane_new(&options, &lane, &error));
	must(db_open(&options.db, &db, &error)); /* a second connection, to prepare and to look */
	arena_init(&arena, 4u << 20);
	read_definition(&arena);
	unit_init(&unit, /* op= */ 1);
	entity_create(&unit, &(struct stamp){1, clock_wall(clock_system()), "demo"}, &pay.ref, INVOICE, slice_str("{}"),
		      slice_of(NULL, 0));
	must(db_run_unit(db, &unit, &result, &arena, &error));
	printf("%d people press “pay” on one invoice at the same moment:\n\n", PRESSES);
	press_all(lane, &arena);
	printf("  %3d × OK            the card was charged\n  %3d × CLAIM_FAILED  %s\n\n  effects in the outside world: %d\n",
	       told[HX_OK], told[HX_CLAIM_FAILED], hx_code_text(HX_CLAIM_FAILED), effects);
	unit_init(&unit, 0);
	UNIT_ADD(&unit, UNIT_ANY, &stmt_history, db_int(INVOICE));
	must(db_run_unit(db, &unit, &result, &arena, &error));
	bool good = show_history(&result.rows[0]) && effects == 1 && told[HX_OK] == 1;

	printf("\n  %s\n", good ? "The chain holds: no row was changed, added or taken away." : "THIS IS WRONG.");
	lane_free(lane);
	db_close(db);
	arena_release(&arena);
	(void)(unlink("once.db"), unlink("once.db-wal"), unlink("once.db-shm"),
	       rmdir(dir)); /* as far as they are there */
	return !good;
}
