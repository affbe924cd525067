/* Branches of which the first one decides, and so much of a run that they are made in more than one move. */
#include "unit/flow/driven_run.h"

#define MIB (1 << 20)
#define BRANCH(name)                                                                                                   \
	"'" name "':[{'name':'" name "1','type':'task','action':'do','retry':{'max_attempts':1},'save_as':'" name "'}]"

/* Three branches, so much that a slice ends after so many of them; the first slice is made. */
static void begin(struct world *w, int slice)
{
	size_t bytes = (size_t)(9 / slice) * MIB;
	char *input = malloc(bytes + 20);
	size_t n;

	assert_non_null(input);
	define("'steps':[{'name':'ways','type':'parallel','join':'any','branches':{" BRANCH("x") "," BRANCH(
		"y") "," BRANCH("z") "},'save_as':'won'}],'output':'.state.won'");
	n = (size_t)snprintf(input, bytes, "{\"t\":\"");
	memset(input + n, 't', bytes);
	memcpy(input + n + bytes, "\"}", sizeof "\"}");
	create(w, input);
	free(input);
	assert_int_equal(drive(w, ok), HX_OK);
}

/* -1: the run itself, else its child of this number. */
static void drive_one(struct world *w, int64_t n, const struct script *script)
{
	static const struct db_stmt stmt_child = {
		.name = "test_child",
		.sql = "SELECT subject FROM hx_run WHERE coalesce(parent_n, -1) = ?1",
		.in = "i",
		.out = "i",
	};

	unit_init(&w->unit, 0);
	UNIT_ADD(&w->unit, UNIT_ANY, &stmt_child, db_int(n));
	assert_int_equal(world_run(w), UNIT_WON);
	assert_int_equal(w->result.rows[0].n, 1);
	fixture.subject = world_int(w, 0, 0);
	assert_int_equal(drive(w, script), HX_OK);
}

static const struct db_stmt stmt_tree = {
	.name = "test_tree",
	.sql = "SELECT group_concat(words, ', ') FROM (SELECT coalesce(r.parent_n, 'run') || ' ' || s.status || coalesce(' asked to ' ||"
	       " r.asked, '') || CASE WHEN r.parent IS NULL THEN coalesce(' -> ' || r.output, '') ELSE '' END AS words"
	       " FROM hx_run r JOIN hx_subject s ON s.id = r.subject ORDER BY r.parent_n)",
	.in = "",
	.out = "t",
};

static void test_what_the_winner_has_put_out(void **state)
{
	static const struct script one[] = {{ACT_OK, "1"}, {0}};
	struct world *w = *state;

	begin(w, 1);
	assert_is(w, &stmt_tree, "run WAITING, 0 PENDING");
	drive_one(w, 0, one);
	drive_one(w, -1, one);
	assert_is(w, &stmt_tree, "run COMPLETED -> {\"x\":{\"x\":1}}, 0 COMPLETED");
}

static void test_who_was_done_later_is_undone(void **state)
{
	struct world *w = *state;

	begin(w, 2);
	assert_is(w, &stmt_tree, "run WAITING, 0 PENDING, 1 PENDING");
	drive_one(w, 1, ok);
	drive_one(w, 0, ok);
	drive_one(w, -1, ok);
	assert_is(w, &stmt_tree, "run WAITING, 0 COMPLETED asked to cancel, 1 COMPLETED");
}

static void test_a_later_slice_may_win(void **state)
{
	static const struct script no[] = {{ACT_FAILED, "no"}, {0}};
	struct world *w = *state;

	begin(w, 1);
	drive_one(w, 0, no);
	drive_one(w, -1, ok);
	assert_is(w, &stmt_tree, "run WAITING, 0 FAILED, 1 PENDING");
	drive_one(w, 1, no);
	drive_one(w, -1, ok);
	drive_one(w, 2, no);
	drive_one(w, -1, ok);
	assert_is(w, &stmt_tree, "run FAILED, 0 FAILED, 1 FAILED, 2 FAILED");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_what_the_winner_has_put_out),
		TEST(test_who_was_done_later_is_undone),
		TEST(test_a_later_slice_may_win),
	};

	return cmocka_run_group_tests(tests, NULL, forget);
}
