/*
 * The tables of ways: whole in themselves, and the same on the pages that show them, word by word. What the engine really does
 * is compared with them by the simulator (I9 of sim/invariant.h) and, on real stores, by the audit (contract/test_audit.c).
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/strbuf.h"
#include "flow/account.h"
#include "flow/batch.h"
#include "flow/job.h"
#include "flow/run.h"
#include "flow/ways.h"

#define PAGE_BYTES_MAX (1u << 20)

static const struct {
	const struct ways *ways;
	const char *page, *mark;
	const char *drawing; /* the heading of the section that draws it; NULL: none does */
} shown[] = {
	{&run_ways, "docs/runs.md", "ways of a run", "## The states of a run"},
	{&batch_ways, "docs/batches.md", "ways of a batch", "## The states of a batch"},
	{&job_ways, "docs/runs.md", "ways of a job", NULL},
};
#define SHOWN (sizeof shown / sizeof *shown)

static void write_statuses(const char *const *list, struct strbuf *out)
{
	for (size_t i = 0; list[i]; i++)
		if (list[i][0])
			strbuf_addf(out, " `%s`", list[i]);
}

static void write_table(const struct ways *ways, struct strbuf *out)
{
	strbuf_add_str(out, "| by | from | to |\n| --- | --- | --- |\n");
	for (const struct way *way = ways->ways; way->by; way++) {
		strbuf_addf(out, "| %s |", way->by);
		write_statuses(way->from, out);
		strbuf_add_str(out, way->to[0] ? " |" : " | where it is");
		write_statuses(way->to, out);
		strbuf_add_str(out, " |\n");
	}
}

static char *read_page(const char *name)
{
	FILE *f = fopen(name, "r");
	char *text = calloc(1, PAGE_BYTES_MAX);

	if (!f || !text || fread(text, 1, PAGE_BYTES_MAX - 1, f) == 0)
		fail_msg("%s cannot be read", name);
	fclose(f);
	return text;
}

static void pages_show_the_tables(void **state)
{
	(void)state;
	for (size_t i = 0; i < SHOWN; i++) {
		char *page = read_page(shown[i].page), begin[64], end[64], *from, *to;
		struct strbuf table;

		snprintf(begin, sizeof begin, "<!-- %s -->\n", shown[i].mark);
		snprintf(end, sizeof end, "<!-- /%s -->\n", shown[i].mark);
		strbuf_init(&table, PAGE_BYTES_MAX);
		write_table(shown[i].ways, &table);
		from = strstr(page, begin);
		to = strstr(page, end);
		if (!from || !to ||
		    !slice_eq(slice_of(from + strlen(begin), (size_t)(to - from) - strlen(begin)),
			      strbuf_slice(&table)))
			fail_msg("%s should have, between %s and %s:\n%s", shown[i].page, begin, end, table.p);
		strbuf_release(&table);
		free(page);
	}
}

/* Drawings are for people, and leave out what would make them hard to read: but no status, and none that there is not. */
static void drawings_have_every_status(void **state)
{
	(void)state;
	for (size_t i = 0; i < SHOWN; i++) {
		char *page, *begin, *end;

		if (!shown[i].drawing)
			continue;
		page = read_page(shown[i].page);
		begin = strstr(strstr(page, shown[i].drawing), "```");
		end = strstr(begin + 3, "```");
		*end = '\0';
		for (const char *const *status = shown[i].ways->statuses; *status; status++)
			if (!strstr(begin, *status))
				fail_msg("%s: the drawing does not have %s", shown[i].page, *status);
		for (const char *p = begin; *p; p++) {
			size_t n = strspn(p, "ABCDEFGHIJKLMNOPQRSTUVWXYZ_");

			if (n > 3 && !ways_status(shown[i].ways, slice_of(p, n)))
				fail_msg("%s: the drawing has %.*s, which is no status", shown[i].page, (int)n, p);
			p += n ? n - 1 : 0;
		}
		free(page);
	}
}

/* ---- whole in themselves ---- */

static void assert_known(const struct ways *ways, const char *const *list)
{
	for (; *list; list++)
		if (**list)
			assert_non_null(ways_status(ways, slice_str(*list)));
}

static bool is_reached(const struct ways *ways, const char *status)
{
	for (const struct way *way = ways->ways; way->by; way++)
		for (const char *const *to = way->to; *to; to++)
			if (strcmp(*to, status) == 0)
				return true;
	return false;
}

/* What has ended goes on by a verb of somebody's, if at all: nobody holds it who could. */
static void every_status_is_reached_and_left(void **state)
{
	static const struct ways *const all[] = {&run_ways, &batch_ways, &job_ways, &account_ways};

	(void)state;
	for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
		for (const struct way *way = all[i]->ways; way->by; way++) {
			assert_known(all[i], way->from);
			assert_known(all[i], way->to);
			assert_false(ways_is_terminal(all[i], slice_str(way->from[0])) &&
				     strcmp(way->by, "a node") == 0);
		}
		assert_known(all[i], all[i]->terminal);
		for (const char *const *status = all[i]->statuses; *status; status++) {
			assert_true(is_reached(all[i], *status));
			if (!ways_is_terminal(all[i], slice_str(*status)) && all[i] != &account_ways)
				assert_true(ways_go_on(all[i], slice_str(*status)));
		}
	}
}

static bool leads(const struct ways *ways, const char *by, const char *from, const char *to)
{
	return ways_lead(ways, by, slice_str(from), slice_str(to));
}

static void what_must_never_happen_is_no_way(void **state)
{
	(void)state;
	assert_false(leads(&run_ways, "cancel", RUN_COMPLETED, RUN_CANCELLING)); /* only with its parent: */
	assert_true(leads(&run_ways, "its parent", RUN_COMPLETED, RUN_CANCELLING));
	assert_false(leads(&run_ways, NULL, RUN_COMPLETED, RUN_CANCELLED));
	assert_false(leads(&run_ways, NULL, RUN_COMPLETED, RUN_PENDING));
	assert_false(ways_go_on(&run_ways, slice_str(RUN_CANCELLED)));
	assert_false(leads(&run_ways, NULL, RUN_CANCELLING, RUN_RUNNING));
	assert_false(leads(&run_ways, NULL, RUN_FAILED, RUN_RUNNING));
	assert_false(leads(&run_ways, NULL, RUN_PAUSED, RUN_COMPLETED));
	assert_false(leads(&run_ways, "pause", RUN_CANCELLING, RUN_PAUSED));
	assert_false(leads(&run_ways, "event", RUN_RUNNING, RUN_WAITING)); /* it stays */
	assert_true(leads(&run_ways, "event", RUN_RUNNING, RUN_RUNNING));
	assert_true(leads(&run_ways, "retry", RUN_FAILED, RUN_PENDING));
	assert_false(leads(&run_ways, NULL, "", RUN_RUNNING));
	assert_false(leads(&batch_ways, NULL, BATCH_CANCELLING, BATCH_COMPLETED)); /* B6 */
	assert_false(leads(&batch_ways, NULL, BATCH_PENDING, BATCH_RUNNING));
	assert_false(leads(&batch_ways, "a node", BATCH_LOADING, BATCH_RUNNING));
	assert_false(leads(&job_ways, NULL, JOB_COMPLETED, JOB_AVAILABLE));
	assert_false(leads(&job_ways, "claim", JOB_PARKED, JOB_RUNNING));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(pages_show_the_tables),
		cmocka_unit_test(drawings_have_every_status),
		cmocka_unit_test(every_status_is_reached_and_left),
		cmocka_unit_test(what_must_never_happen_is_no_way),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
