/* Does what a run has done fit another version? A table: the way that was taken, the other version, and where it leads, or what does not fit. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/strbuf.h"
#include "flow/run_fit.h"
#include "support/must_hold.h"

static struct arena arena;

static const struct run_definition *define(const char *steps)
{
	const struct run_definition *definition;
	struct findings findings;
	char text[4000];

	snprintf(text, sizeof text,
		 "{'workflow':'w','kind':'run','actions':{'do':{'kind':'noop'},'other':{'kind':'noop'}},'steps':[%s]}",
		 steps);
	for (char *p = text; *p; p++)
		*p = *p == '\'' ? '"' : *p;
	findings_init(&findings, &arena);
	run_definition_parse("w.json", slice_str(text), &arena, &findings, &definition);
	for (const struct finding *f = findings.first; f; f = f->next)
		if (f->severity == FINDING_ERROR)
			printf("%s: %s\n", f->rule, f->text);
	assert_non_null(definition);
	return definition;
}

static struct json json_of(const char *quotes, char *buffer, size_t room)
{
	snprintf(buffer, room, "%s", quotes);
	for (char *p = buffer; *p; p++)
		*p = *p == '\'' ? '"' : *p;
	return json_trust(slice_str(buffer));
}

static int set_up(void **state)
{
	(void)state;
	arena_init(&arena, 16u << 20);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	arena_release(&arena);
	return 0;
}

#define TASK(name) "{'name':'" name "','type':'task','action':'do'}"
#define WAIT(name) "{'name':'" name "','type':'wait','for':'1s'}"
#define JUMP(name, to) "{'name':'" name "','type':'condition','when':'true','then':'" to "'}"
#define MAP(name, over) "{'name':'" name "','type':'map','over':'" over "','action':'do'}"
#define BOTH(name, join, a, b)                                                                                         \
	"{'name':'" name "','type':'parallel','join':'" join "','branches':{'" a "':[" TASK("i") "],'" b               \
												 "':[" TASK("j") "]}}"
#define BOTH_AND(name, a, b, c)                                                                                        \
	"{'name':'" name "','type':'parallel','branches':{'" a                                                         \
	"':[" TASK("i") "],'" b "':[" TASK("j") "],'" c "':[" TASK("k") "]}}"

struct row {
	const char *what, *from, *to;
	const char *renames;
	const char *way; /* "0 1t 3": positions, t: it was true */
	bool begun;
	const char *found; /* "0 1 3 | 4", or "step: the beginning of why" */
};

static const struct row rows[] = {
	{"the same", TASK("a") "," TASK("b"), TASK("a") "," TASK("b"), "{}", "0", true, "0 | 1"},
	{"nothing done, nothing begun", TASK("a"), WAIT("z") "," TASK("a"), "{}", "", false, "| 0"},
	{"begun elsewhere", TASK("a"), WAIT("z") "," TASK("a"), "{}", "", true, "a: the other version has another"},
	{"another action", TASK("a"), "{'name':'a','type':'task','action':'other'}", "{}", "0", false, "0 | 1"},
	{"more at the end", TASK("a"), TASK("a") "," TASK("b"), "{}", "0", false, "0 | 1"},
	{"not begun, and gone", TASK("a") "," TASK("b"), TASK("a"), "{}", "0", false, "0 | 1"},
	{"begun, and gone", TASK("a") "," TASK("b"), TASK("a"), "{}", "0", true, "b: the other version is at its end"},
	{"done, and gone", TASK("a") "," TASK("b"), TASK("b"), "{}", "0", false, "a: the other version has another"},
	{"another order", TASK("a") "," TASK("b"), TASK("b") "," TASK("a"), "{}", "0 1", false,
	 "a: the other version has another"},
	{"another type", TASK("a"), WAIT("a"), "{}", "0", false, "a: it has another type: wait"},
	{"renamed", TASK("a") "," TASK("b"), TASK("z") "," TASK("b"), "{'a':'z'}", "0", true, "0 | 1"},
	{"renamed where it stands", TASK("a") "," TASK("b"), TASK("a") "," TASK("z"), "{'b':'z'}", "0", true, "0 | 1"},
	{"more in what was jumped over", JUMP("c", "x") "," TASK("y") "," TASK("x"),
	 JUMP("c", "x") "," TASK("y") "," TASK("y2") "," TASK("x"), "{}", "0t 2", false, "0 3 | 4"},
	{"fewer in what was jumped over", JUMP("c", "x") "," TASK("y") "," TASK("y2") "," TASK("x"),
	 JUMP("c", "x") "," TASK("y") "," TASK("x"), "{}", "0t 3", false, "0 2 | 3"},
	{"the same way, taken by the other branch", JUMP("c", "x") "," TASK("y") "," TASK("x"),
	 JUMP("c", "x") "," TASK("z") "," TASK("y") "," TASK("x"), "{}", "0f 1", false,
	 "y: the other version has another"},
	{"a condition that leads elsewhere", JUMP("c", "x") "," TASK("y") "," TASK("x"),
	 JUMP("c", "z") "," TASK("y") "," TASK("x") "," TASK("z"), "{}", "0t 2", false,
	 "x: the other version has another"},
	{"a map of other items, done", MAP("m", ".input.a"), MAP("m", ".input.b"), "{}", "0", false, "0 | 1"},
	{"a map of other items, begun", MAP("m", ".input.a"), MAP("m", ".input.b"), "{}", "", true, "m: it has begun"},
	{"a map of another workflow, begun", "{'name':'m','type':'map','over':'.input.a','workflow':'v'}",
	 "{'name':'m','type':'map','over':'.input.a','workflow':'w'}", "{}", "", true, "m: it has begun"},
	{"a map of runs, then of tasks", "{'name':'m','type':'map','over':'.input.a','workflow':'v'}",
	 MAP("m", ".input.a"), "{}", "0", false, "m: its children would be others"},
	{"branches in another order", BOTH("p", "all", "x", "y"), BOTH("p", "all", "y", "x"), "{}", "0", false,
	 "p: its children would be others"},
	{"another join, done", BOTH("p", "all", "x", "y"), BOTH("p", "any", "x", "y"), "{}", "0", false, "0 | 1"},
	{"another join, begun", BOTH("p", "all", "x", "y"), BOTH("p", "any", "x", "y"), "{}", "", true,
	 "p: it has begun"},
	{"one branch more", BOTH("p", "all", "x", "y"), BOTH_AND("p", "x", "y", "z"), "{}", "", true, "| 0"},
	{"one branch fewer", BOTH_AND("p", "x", "y", "z"), BOTH("p", "all", "x", "y"), "{}", "", true,
	 "p: its children would be others"},
};

static size_t read_way(const char *way, struct run_passed *passed)
{
	size_t n = 0;

	for (const char *p = way; *p; p++)
		if (*p >= '0' && *p <= '9')
			passed[n++] = (struct run_passed){.position = (size_t)(*p - '0'), .truth = p[1] == 't'};
	return n;
}

static void tell(const struct row *row, char *found, size_t room)
{
	struct run_passed passed[10];
	size_t n = read_way(row->way, passed), stands = 99;
	struct run_misfit misfit = {0};
	char renames[200];
	LOCAL_STRBUF(text, 1000);

	if (run_fit(json_of(row->renames, renames, sizeof renames), define(row->from), define(row->to), passed, n,
		    row->begun, &stands, &misfit)) {
		for (size_t i = 0; i < n; i++)
			strbuf_addf(&text, "%zu ", passed[i].to);
		strbuf_addf(&text, "| %zu", stands);
	} else {
		strbuf_addf(&text, "%s: %s%s", misfit.step, misfit.why, misfit.other ? misfit.other : "");
	}
	snprintf(found, room, "%.*s", SLICE_ARGS(strbuf_slice(&text)));
}

static void test_ways(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		char found[1000];

		tell(&rows[i], found, sizeof found);
		if (strncmp(found, rows[i].found, strlen(rows[i].found)) != 0)
			print_message("%s: %s\n", rows[i].what, found);
		MUST_HOLD(strncmp(found, rows[i].found, strlen(rows[i].found)) == 0,
			  "a run does not fit, or fits elsewhere");
	}
}

/* ---- parts ---- */

static void test_parts(void **state)
{
	const struct run_definition *from = define(BOTH("p", "all", "x",
							"y") ",{'name':'r','type':'repeat','until':'true','steps':["
							     "{'name':'q','type':'parallel','branches':{'u':[" TASK(
								     "v") "]}}]}"),
				    *to = define(TASK("n") "," BOTH(
					    "p2", "all", "x",
					    "y") ",{'name':'r','type':'repeat','until':'true','steps':["
						 "{'name':'q2','type':'parallel','branches':{'u':[" TASK("v") "]}}]}"),
				    *was, *is;
	struct run_misfit misfit;
	char renames[100];
	struct json map = json_of("{'p':'p2','q':'q2'}", renames, sizeof renames);

	(void)state;
	is = run_fit_part(map, from, to, slice_str("p/y"), &was, &misfit);
	assert_string_equal(is->scope, "p2/y");
	assert_string_equal(was->scope, "p/y");
	is = run_fit_part(map, from, to, slice_str("r/q/u"), &was, &misfit);
	assert_string_equal(is->scope, "r/q2/u");
	assert_null(run_fit_part(json_trust(slice_str("{}")), from, to, slice_str("r/q/u"), &was, &misfit));
	assert_string_equal(misfit.step, "q");
}

/* ---- names ---- */

static const struct {
	const char *what, *from, *to, *renames, *renamed, *found;
} names[] = {
	{"none", TASK("a"), TASK("a"), "{}", "{}", "{}"},
	{"one", TASK("a"), TASK("z"), "{'a':'z'}", "{}", "{'z':'a'}"},
	{"once more", TASK("z"), TASK("y"), "{'z':'y'}", "{'z':'a'}", "{'y':'a'}"},
	{"and back", TASK("z"), TASK("a"), "{'z':'a'}", "{'z':'a'}", "{}"},
	{"what stays", TASK("z") "," TASK("b"), TASK("z") "," TASK("c"), "{'b':'c'}", "{'z':'a'}", "{'c':'b','z':'a'}"},
	{"what is gone", TASK("z") "," TASK("b"), TASK("b"), "{}", "{'z':'a'}", "{}"},
	{"inside a part", BOTH("p", "all", "x", "y"),
	 "{'name':'p','type':'parallel','branches':{'x':[" TASK("i2") "],'y':[" TASK("j") "]}}", "{'i':'i2'}", "{}",
	 "{'i2':'i'}"},
	{"there is no such step", TASK("a"), TASK("z"), "{'b':'z'}", "{}", "b: the version that the run has"},
	{"nor such a new one", TASK("a"), TASK("z"), "{'a':'y'}", "{}", "y: the other version has no step"},
	{"the old name is another's now", TASK("a"), TASK("z") "," TASK("a"), "{'a':'z'}", "{}", "a: it is renamed"},
	{"the new name was another's", TASK("a") "," TASK("b"), TASK("b"), "{'a':'b'}", "{}", "b: two steps"},
	{"two become one", TASK("a") "," TASK("b"), TASK("z"), "{'a':'z','b':'z'}", "{}", "z: two steps"},
	{"a new step has the keys of another", TASK("z"), TASK("z") "," TASK("a"), "{}", "{'z':'a'}",
	 "a: its calls would have the keys"},
};

static void test_names(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		char renames[200], renamed[200], wanted[200], found[400];
		struct run_misfit misfit = {0};
		bool fits;
		LOCAL_STRBUF(text, 1000);

		fits = run_fit_names(json_of(names[i].renames, renames, sizeof renames),
				     json_of(names[i].renamed, renamed, sizeof renamed), define(names[i].from),
				     define(names[i].to), &arena, &text, &misfit);
		if (fits)
			snprintf(found, sizeof found, "%.*s", SLICE_ARGS(strbuf_slice(&text)));
		else
			snprintf(found, sizeof found, "%s: %s%s", misfit.step, misfit.why,
				 misfit.other ? misfit.other : "");
		(void)json_of(names[i].found, wanted, sizeof wanted);
		if (strncmp(found, wanted, strlen(wanted)) != 0)
			print_message("%s: %s\n", names[i].what, found);
		MUST_HOLD(strncmp(found, wanted, strlen(wanted)) == 0,
			  "two steps of a run have the same keys, or one has two");
	}
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_ways, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_parts, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_names, set_up, tear_down),
	};

	if (argc > 1)
		cmocka_set_test_filter(argv[1]);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
