/* `outcomes` of http actions: what is understood, what is refused and how, and which of two entries counts. */
#include "definition.h"

#include "model/outcomes.h"

static const char *with_outcomes(const char *outcomes)
{
	return text_printf(
		&arena,
		"{ 'workflow': 'w', 'kind': 'entity', 'status_types': ['a'], 'initial_status': 'a', 'steps': [], "
		"'actions': { 'A': { 'kind': 'http', 'url': 'http://h/',\n'outcomes': %s } } }",
		outcomes);
}

static const struct outcomes *outcomes_of(const char *outcomes)
{
	return &parse_clean(with_outcomes(outcomes))->actions[0].outcomes;
}

/* One error, which says this. */
static void refused(const char *outcomes, const char *said)
{
	assert_errors(with_outcomes(outcomes), 1);
	assert_said("w.json:2: error: workflow w: ", "action A: ", said, NULL);
}

static void finds(const struct outcomes *outcomes, long status, enum outcome_word expected)
{
	enum outcome_word word;

	assert_true(outcomes_find(outcomes, status, &word));
	assert_int_equal(word, expected);
}

static void every_word(void **state)
{
	const struct outcomes *o = outcomes_of(
		"{ '404': 'done', '409': 'retry', '500-599': 'unknown', '418': 'rejected', '300-399': 'failed' }");
	enum outcome_word word;

	(void)state;
	assert_int_equal(o->n, 5);
	finds(o, 404, OUTCOME_DONE);
	finds(o, 409, OUTCOME_RETRY);
	finds(o, 500, OUTCOME_UNKNOWN);
	finds(o, 599, OUTCOME_UNKNOWN);
	finds(o, 418, OUTCOME_REJECTED);
	finds(o, 300, OUTCOME_FAILED);
	assert_false(outcomes_find(o, 403, &word));
	assert_false(outcomes_find(o, 600, &word));
	assert_int_equal(outcomes_of("{}")->n, 0);
	assert_false(outcomes_find(outcomes_of("{}"), 404, &word));
}

/* In whichever order they are written. */
static void one_status_counts_more_than_a_range(void **state)
{
	(void)state;
	finds(outcomes_of("{ '503': 'retry', '500-599': 'unknown' }"), 503, OUTCOME_RETRY);
	finds(outcomes_of("{ '500-599': 'unknown', '503': 'retry' }"), 503, OUTCOME_RETRY);
	finds(outcomes_of("{ '500-599': 'unknown', '503': 'retry' }"), 504, OUTCOME_UNKNOWN);
}

static void what_is_refused(void **state)
{
	(void)state;
	refused("{ '404': 'ok' }", "404 is \"ok\", which is not known");
	refused("{ '404': 'dome' }", "did you mean \"done\"?");
	refused("{ '404': 'unsettled' }", "which is not known");
	refused("{ '404': 7 }", "must be a string, not 7");
	refused("{ '5xx': 'unknown' }", "did you mean \"500-599\"?");
	refused("{ '4X4': 'unknown' }", "\"4X4\" is no status");
	refused("{ '': 'done' }", "is no status");
	refused("{ '40': 'done' }", "\"40\" is no status");
	refused("{ '4040': 'done' }", "\"4040\" is no status");
	refused("{ '+04': 'done' }", "is no status");
	refused("{ '199': 'done' }", "from 200 to 599");
	refused("{ '600': 'done' }", "from 200 to 599");
	refused("{ '500-600': 'done' }", "from 200 to 599");
	refused("{ '500-500': 'done' }", "is no status");
	refused("{ '599-500': 'done' }", "is no status");
	refused("{ '500_599': 'done' }", "is no status");
	refused("{ '500-550': 'retry', '550-599': 'unknown' }", "have statuses in common");
	refused("{ '400-599': 'retry', '500-510': 'unknown' }", "have statuses in common");
	refused("[]", "outcomes must be an object");
	refused("'done'", "outcomes must be an object");
}

static void too_many(void **state)
{
	struct strbuf text;

	(void)state;
	for (int n = OUTCOMES_MAX; n <= OUTCOMES_MAX + 1; n++) {
		strbuf_init(&text, 4096);
		for (int i = 0; i < n; i++)
			strbuf_addf(&text, "%s'%d': 'done'", i ? "," : "{", 400 + i);
		strbuf_add_char(&text, '}');
		if (n == OUTCOMES_MAX)
			assert_int_equal(outcomes_of(text.p)->n, OUTCOMES_MAX);
		else
			refused(text.p, "it has 33 entries; at most 32");
		strbuf_release(&text);
	}
}

/* A worker answers no status. */
static void only_of_http(void **state)
{
	(void)state;
	assert_errors("{ 'workflow': 'w', 'kind': 'entity', 'status_types': ['a'], 'initial_status': 'a', 'steps': [], "
		      "'actions': { 'A': { 'kind': 'exec', 'argv': ['x'], 'outcomes': {} } } }",
		      1);
	assert_said("\"outcomes\" does not belong to an action of kind exec", NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		model_test(every_word),      model_test(one_status_counts_more_than_a_range),
		model_test(what_is_refused), model_test(too_many),
		model_test(only_of_http),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
