/* Pictures of definitions: well-formed, readable, complete, the same every time, and also at the limits. */
#include <time.h>

#include "base/slice.h"
#include "definition.h"
#include "model/graph_picture.h"
#include "svg_reader.h"

static struct svg_reader reader;

static const struct definition *define(const char *text)
{
	const struct definition *definition = NULL;

	findings_init(&findings, &arena);
	definition_parse("w.json", slice_str(json_text(text)), &arena, &findings, &definition);
	print_findings();
	if (!definition)
		fail_msg("%s", printed.p);
	return definition;
}

/* The text of the picture, which lives in the arena; it is read strictly. */
static struct slice draw(const struct definition *definition)
{
	struct strbuf svg;
	struct hx_error err;
	struct slice copy;

	strbuf_init(&svg, GRAPH_BYTES_MAX);
	if (graph_picture(definition, &svg, &err) != HX_OK)
		fail_msg("%s", err.detail);
	copy = arena_copy(&arena, strbuf_slice(&svg));
	strbuf_release(&svg);
	assert_non_null(copy.p);
	svg_read(&reader, copy);
	return copy;
}

static void has(const char *text)
{
	if (!svg_has_text(&reader, text))
		fail_msg("\"%s\" is not in the picture", text);
}

static void has_not(const char *text)
{
	if (svg_has_text(&reader, text))
		fail_msg("\"%s\" is in the picture", text);
}

static size_t count(const char *text)
{
	size_t n = 0;

	for (size_t i = 0; i < reader.texts_n; i++)
		n += strcmp(reader.texts[i].text, text) == 0;
	return n;
}

static void an_entity(void **state)
{
	struct slice svg;

	(void)state;
	svg = draw(define(
		"{ 'workflow': 'billing', 'kind': 'entity', 'meta': { 'module': 'money', 'table': 'app.bills' },\n"
		"  'status_types': ['draft', 'approved', 'closing', 'closed', 'lost'], 'initial_status': 'draft',\n"
		"  'actions': { 'Close': { 'kind': 'http', 'url': 'http://h/c', 'probe': 'Closed' },\n"
		"    'Closed': { 'kind': 'http', 'url': 'http://h/d', 'effect': 'idempotent' },\n"
		"    'Check': { 'kind': 'native', 'function': 'f', 'effect': 'idempotent' },\n"
		"    'Mail': { 'kind': 'http', 'url': 'http://h/m', 'effect': 'keyed' }, 'Spare': { 'kind': 'noop' } },\n"
		"  'steps': [ { 'step_id': 1, 'step_key': 'approve', 'status': 'draft', 'successful_state': 'approved' },\n"
		"    { 'step_id': 2, 'step_key': 'close', 'status': 'approved', 'entry_lock': '5s', 'lease': '2m',\n"
		"      'claim_state': { 'admin': ['closing', 'approved'] }, 'successful_state': { 'admin': 'closed' },\n"
		"      'action': { 'admin': 'Close' }, 'validation': 'Check', 'on_unknown': { 'admin': 'probe' },\n"
		"      'success_after_effect': ['Mail'] },\n"
		"    { 'step_id': 3, 'step_key': 'reopen', 'status': 'closed', 'successful_state': 'draft' },\n"
		"    { 'step_id': 4, 'step_key': 'touch', 'status': 'draft', 'successful_state': 'draft' },\n"
		"    { 'step_id': 5, 'step_key': 'nudge', 'status': 'draft', 'successful_state': {} } ] }"));
	svg_assert_readable(&reader);
	has("billing");
	has("entity, module money, table app.bills: 5 statuses, 5 steps");
	for (const char *const *name =
		     (const char *const[]){"draft", "approved", "closing", "closed", "lost", "approve", "close",
					   "reopen", "touch", "nudge", "Close", "Closed", "Check", "Mail", NULL};
	     *name; name++)
		if (count(*name) != 1)
			fail_msg("%s is there %zu times", *name, count(*name));
	has("by anyone");
	has("by admin");
	has("entry lock 5s");
	has("lease 2m");
	has("http, claimed");
	has("native, idempotent");
	has("if unknown: ask");
	has("nobody may fire it");
	has("nothing reaches it");
	has("Actions that are not called here: Spare");
	assert_non_null(strstr(svg.p, "<title id=\"hapax-title-billing\">workflow billing</title>"));
	assert_non_null(strstr(svg.p, "aria-labelledby=\"hapax-title-billing hapax-desc-billing\""));
}

static void requesters_have_an_arrow_for_each_difference(void **state)
{
	(void)state;
	draw(define(
		"{ 'workflow': 'w', 'kind': 'entity', 'status_types': ['a', 'b', 'c'], 'initial_status': 'a',\n"
		"  'steps': [ { 'step_id': 1, 'step_key': 'go', 'status': 'a',\n"
		"    'successful_state': { 'ann': 'b', 'bob': 'b', 'eve': 'c', 'default': 'c' } },\n"
		"    { 'step_id': 2, 'step_key': 'on', 'status': 'b', 'successful_state': { 'eve': 'a', 'default': 'c' } } ] }"));
	svg_assert_readable(&reader);
	assert_int_equal(count("go"), 2);
	has("by ann, bob");
	has("by anyone but ann, bob");
	assert_int_equal(count("on"), 2);
	has("by eve");
	has("by anyone but eve");
}

static void a_run(void **state)
{
	(void)state;
	draw(define(
		"{ 'workflow': 'order', 'kind': 'run', 'actions': {\n"
		"    'take': { 'kind': 'worker', 'queue': 'q', 'effect': 'keyed' }, 'put': { 'kind': 'noop' } },\n"
		"  'steps': [ { 'name': 'reserve', 'type': 'task', 'action': 'take', 'input': '{sku: .input.sku}',\n"
		"      'save_as': 'shelf', 'compensate': 'put', 'retry': { 'max_attempts': 7 } },\n"
		"    { 'name': 'check', 'type': 'condition', 'when': '.input.total > 1000', 'then': 'boss', 'else': 'end' },\n"
		"    { 'name': 'boss', 'type': 'approval', 'timeout': '24h' },\n"
		"    { 'name': 'paid', 'type': 'external_event', 'event': 'payment', 'timeout': '1h', 'on_timeout': 'continue' },\n"
		"    { 'name': 'rest', 'type': 'wait', 'for': '10m' } ], 'output': '.state.shelf' }"));
	svg_assert_readable(&reader);
	for (const char *const *name = (const char *const[]){"start",
							     "reserve",
							     "task",
							     "take",
							     "worker, keyed",
							     "7 attempts, 1s to 5m apart",
							     "input: {sku: .input.sku}",
							     "saved as .state.shelf",
							     "put",
							     "noop, idempotent",
							     "check",
							     "condition",
							     "when: .input.total > 1000",
							     "then",
							     "else",
							     "boss",
							     "approval",
							     "within 1d, or it fails",
							     "paid",
							     "external_event",
							     "event payment",
							     "within 1h, or it goes on without",
							     "rest",
							     "wait",
							     "for 10m",
							     "COMPLETED",
							     "output: .state.shelf",
							     "undoes its step on cancel, in reverse order",
							     NULL};
	     *name; name++)
		has(*name);
	has_not("nothing leads here");
}

static void a_step_that_nothing_leads_to(void **state)
{
	(void)state;
	draw(define(
		"{ 'workflow': 'w', 'kind': 'run', 'steps': [\n"
		"  { 'name': 'a', 'type': 'condition', 'when': '.input.x', 'then': 'c', 'else': 'end' },\n"
		"  { 'name': 'b', 'type': 'wait', 'for': '1s' }, { 'name': 'c', 'type': 'wait', 'for': '1s' } ] }"));
	svg_assert_readable(&reader);
	assert_int_equal(count("nothing leads here"), 1);
	has("b");
}

#define BATCH(fields)                                                                                                     \
	"{ 'workflow': 'render', 'kind': 'batch', 'actions': {\n"                                                         \
	"    'one': { 'kind': 'http', 'url': 'http://h/r', 'effect': 'keyed', 'void': 'forbid', 'probe': 'done_one' },\n" \
	"    'done_one': { 'kind': 'http', 'url': 'http://h/p', 'effect': 'idempotent' },\n"                              \
	"    'forbid': { 'kind': 'http', 'url': 'http://h/v', 'effect': 'idempotent' },\n"                                \
	"    'discard': { 'kind': 'http', 'url': 'http://h/d', 'effect': 'idempotent' },\n"                               \
	"    'plain': { 'kind': 'noop' }, 'tell': { 'kind': 'http', 'url': 'http://h/t', 'effect': 'keyed' } },\n" fields \
	" }"

static void a_batch(void **state)
{
	(void)state;
	draw(define(BATCH(
		"'item_action': 'one', 'cleanup_action': 'discard', 'done_after_effect': ['tell'], 'concurrency': 9, "
		"'on_unknown': 'probe', 'retry': { 'max_attempts': 1 }")));
	svg_assert_readable(&reader);
	for (const char *const *name =
		     (const char *const[]){"PENDING", "RUNNING", "SUCCEEDED", "FAILED", "UNKNOWN", "accepted",
					   "cancelled", "CANCELLING", "one", "done_one", "forbid", "discard", "tell",
					   "9 at a time", "one attempt", NULL};
	     *name; name++)
		has(*name);
	has("Actions that are not called here: plain");
	draw(define(BATCH("'item_action': 'plain'")));
	svg_assert_readable(&reader);
	has("3. (nothing to clean up)");
	has_not("discard");
}

/* Expressions are the one place where a definition has any characters it likes. */
static void what_xml_reads_otherwise_is_escaped(void **state)
{
	struct slice svg;

	(void)state;
	svg = draw(define(
		"{ 'workflow': 'w', 'kind': 'run', 'steps': [ { 'name': 'a', 'type': 'condition',\n"
		"  'when': '.input.a < 1 and .input.b > 2 and .input.c == \\'&amp;]]>\\'' },\n"
		"  { 'name': 'b', 'type': 'condition', 'when': '.input.a == \\'\xe2\x82\xac \xf0\x9f\x8e\x89 </text>\\'' },\n"
		"  { 'name': 'c', 'type': 'condition', 'when': '.input.a == \\'<script>alert(1)</script>\\'' } ] }"));
	svg_assert_readable(&reader);
	has("when: .input.a < 1 and .input.b > 2 and .input.c");
	has("== \"&amp;]]>\"");
	has("when: .input.a == \"\xe2\x82\xac \xf0\x9f\x8e\x89 </text>\"");
	assert_null(strstr(svg.p, "<script"));
}

static void characters_that_xml_has_no_place_for(void **state)
{
	static const char text[] = "a\0\x01\x1b\r\x7f\xff\xc3(\xef\xbf\xbf\xed\xa0\x80z\"";
	struct strbuf out;

	(void)state;
	strbuf_init(&out, 1000);
	svg_escape(&out, slice_of(text, sizeof text - 1));
	assert_null(memchr(out.p, '\0', out.n));
	assert_int_equal(utf8_valid_bytes(strbuf_slice(&out)), out.n);
	assert_null(strpbrk(out.p, "\x01\x1b\r\"<"));
	assert_null(strstr(out.p, "\xef\xbf\xbf"));
	assert_non_null(strstr(out.p, "\xef\xbf\xbd"));
	assert_int_equal(out.p[0], 'a');
	assert_non_null(strstr(out.p, "z&#34;"));
	strbuf_release(&out);
}

static void a_long_expression_is_cut(void **state)
{
	char *text = arena_alloc(&arena, 5000), *p = text;

	(void)state;
	p += snprintf(
		p, 200,
		"{ 'workflow': 'w', 'kind': 'run', 'steps': [ { 'name': 'a', 'type': 'condition', 'when': '.input.a == \\'");
	for (int i = 0; i < 1000; i++, p += 3)
		memcpy(p, "\xe2\x82\xac", 3); /* a cut at a byte would break them */
	snprintf(p, 200, "\\'' } ] }");
	draw(define(text));
	svg_assert_readable(&reader);
	assert_true(reader.texts_n < 20);
}

/* ---- the same every time ---- */

static void the_same_definition_is_the_same_picture(void **state)
{
	const char *text = billing("{ 'step_id': 2, 'step_key': 'close', 'status': 'approved', 'action': 'Close',\n"
				   "  'claim_state': ['closing', 'approved'], 'successful_state': 'closed',\n"
				   "  'success_after_effect': ['Mail'] }");
	struct slice a, b;

	(void)state;
	a = draw(define(text));
	b = draw(define(text));
	assert_true(a.n > 1000 && slice_eq(a, b));
}

/* ---- any definition ---- */

static uint64_t next_random(uint64_t *seed)
{
	*seed = *seed * UINT64_C(6364136223846793005) + 1442695040888963407u;
	return *seed >> 33;
}

/* Statuses, half of them claims, and steps between them at random: circles, loops, claims that revert elsewhere. */
static const char *random_entity(uint64_t seed)
{
	unsigned places = 2 + (unsigned)next_random(&seed) % 9, steps = 1 + (unsigned)next_random(&seed) % 20;
	struct strbuf text;
	struct slice copy;

	strbuf_init(&text, 100000);
	strbuf_add_str(&text, "{ 'workflow': 'w', 'kind': 'entity', 'initial_status': 's0', 'status_types': ['s0'");
	for (unsigned i = 1; i < places; i++)
		strbuf_addf(&text, ", 's%u%.*s'", i, (int)(next_random(&seed) % 30), "_with_a_name_of_some_length___");
	for (unsigned i = 0; i < steps; i++)
		strbuf_addf(&text, ", 'claim%u'", i);
	strbuf_add_str(&text,
		       "], 'actions': { 'Do': { 'kind': 'http', 'url': 'http://h/', 'effect': 'keyed' } }, 'steps': [");
	copy = arena_copy(&arena, strbuf_slice(&text));
	for (unsigned i = 0; i < steps; i++) {
		const char *name[3];

		/* The statuses as they were written, with their names of some length. */
		for (int k = 0; k < 3; k++) {
			char *found = strstr(copy.p,
					     text_printf(&arena, "'s%u", (unsigned)next_random(&seed) % places));

			name[k] = text_printf(&arena, "%.*s", (int)strcspn(found + 1, "'"), found + 1);
		}
		strbuf_addf(&text, "%s{ 'step_id': %u, 'step_key': 'step%u', 'status': '%s', 'successful_state': ",
			    i ? "," : "", i, i, name[0]);
		strbuf_addf(&text, next_random(&seed) % 3 ? "'%s'" : "{'admin': '%s'}", name[1]);
		if (next_random(&seed) % 2)
			strbuf_addf(&text, ", 'claim_state': {'admin': ['claim%u', '%s']}, 'action': {'admin': 'Do'}",
				    i, name[2]);
		if (next_random(&seed) % 3 == 0)
			strbuf_add_str(&text, ", 'success_after_effect': ['Do']");
		strbuf_add_str(&text, " }");
	}
	strbuf_add_str(&text, "] }");
	assert_false(text.failed);
	copy = arena_copy(&arena, strbuf_slice(&text));
	strbuf_release(&text);
	return copy.p;
}

static void no_definition_has_texts_that_overlap(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 300; seed++) {
		const struct definition *d = define(random_entity(seed));

		draw(d);
		svg_assert_readable(&reader);
		for (size_t i = 0; i < d->entity->statuses_n; i++)
			if (!svg_has_text(&reader, d->entity->statuses[i]))
				fail_msg("seed %lu: no %s", (unsigned long)seed, d->entity->statuses[i]);
		for (size_t i = 0; i < d->entity->steps_n; i++)
			has(d->entity->steps[i].step_key);
		arena_reset(&arena);
	}
}

/* ---- limits ---- */

/* At the ceilings: names of 64 bytes, 1000 statuses, 1000 steps, 64 requesters; what is drawn of it is for `step` to say. */
static const char *large_entity(void (*step)(struct strbuf *text, unsigned i))
{
	struct strbuf text;
	struct slice copy;

	strbuf_init(&text, WORKFLOW_TEXT_BYTES_MAX);
	strbuf_add_str(&text, "{ 'workflow': 'w', 'kind': 'entity', 'status_types': [");
	for (unsigned i = 0; i < WORKFLOW_STATUSES_MAX; i++)
		strbuf_addf(&text, "%s'%060u'", i ? "," : "", i);
	strbuf_addf(&text, "], 'initial_status': '%060u', 'steps': [", 0u);
	for (unsigned i = 0; i < WORKFLOW_STEPS_MAX; i++) {
		strbuf_addf(&text, "%s{ 'step_id': %u, 'step_key': '%064u', ", i ? ",\n" : "", i, i);
		step(&text, i);
		strbuf_add_str(&text, " }");
	}
	strbuf_add_str(&text, "] }");
	assert_false(text.failed);
	copy = arena_copy(&arena, strbuf_slice(&text));
	strbuf_release(&text);
	return copy.p;
}

static void in_a_chain(struct strbuf *text, unsigned i)
{
	strbuf_addf(text, "'status': '%060u', 'successful_state': '%060u'", i,
		    i + 1 < WORKFLOW_STATUSES_MAX ? i + 1 : 0);
}

static void from_one(struct strbuf *text, unsigned i)
{
	strbuf_addf(text, "'status': '%060u', 'successful_state': '%060u'", 0u, i);
}

static void far_apart(struct strbuf *text, unsigned i)
{
	strbuf_addf(text, "'status': '%060u', 'successful_state': '%060u'", i, (i * 617 + 101) % WORKFLOW_STATUSES_MAX);
}

static void by_everyone(struct strbuf *text, unsigned i)
{
	strbuf_addf(text, "'status': '%060u', 'successful_state': {", i);
	for (unsigned r = 0; r < WORKFLOW_REQUESTERS_MAX; r++)
		strbuf_addf(text, "%s'r%02u': '%060u'", r ? "," : "", r, (i + r * 37 + 1) % WORKFLOW_STATUSES_MAX);
	strbuf_add_str(text, "}");
}

static void definitions_at_their_limits_are_drawn(void **state)
{
	static const struct {
		const char *name;
		void (*step)(struct strbuf *text, unsigned i);
	} cases[] = {{"a chain", in_a_chain},
		     {"all from one", from_one},
		     {"far apart", far_apart},
		     {"by everyone", by_everyone}};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		const struct definition *d = define(large_entity(cases[i].step));
		struct strbuf svg;
		struct hx_error err;
		clock_t begun = clock();
		double seconds;

		strbuf_init(&svg, GRAPH_BYTES_MAX);
		if (graph_picture(d, &svg, &err) != HX_OK)
			fail_msg("%s: %s", cases[i].name, err.detail);
		seconds = (double)(clock() - begun) / CLOCKS_PER_SEC;
		print_message("# graph of 1000 statuses and steps, %s: %.0f ms, %zu KiB\n", cases[i].name,
			      seconds * 1000, svg.n / 1024);
		assert_true(seconds < 10); /* the promise is less than one; sanitizers take their share */
		svg_read(&reader, strbuf_slice(&svg));
		svg_assert_readable(&reader);
		has(text_printf(&arena, "%060u", 999));
		has(text_printf(&arena, "%064u", 999));
		strbuf_release(&svg);
		arena_reset(&arena);
	}
}

static void more_than_eight_ways_of_one_step_are_summed_up(void **state)
{
	(void)state;
	draw(define(
		"{ 'workflow': 'w', 'kind': 'entity', 'status_types': ['a', 'b', 'c', 'd', 'e', 'f', 'g', 'h', 'i', 'j', 'k'],\n"
		"  'initial_status': 'a', 'steps': [ { 'step_id': 1, 'step_key': 'go', 'status': 'a', 'successful_state':\n"
		"  { 'r1': 'b', 'r2': 'c', 'r3': 'd', 'r4': 'e', 'r5': 'f', 'r6': 'g', 'r7': 'h', 'r8': 'i', 'r9': 'j',\n"
		"    'r99': 'k' } } ] }"));
	svg_assert_readable(&reader);
	assert_int_equal(count("go"), 8);
	has("(2 more requesters in other ways)");
	has("j");
}

static void a_picture_that_is_too_large_is_refused(void **state)
{
	const struct definition *d = define(
		billing("{ 'step_id': 2, 'step_key': 'x', 'status': 'draft', 'successful_state': 'closed' }"));
	struct hx_error err;
	struct strbuf svg;

	(void)state;
	strbuf_init(&svg, 2000);
	assert_int_equal(graph_picture(d, &svg, &err), HX_TOO_LARGE);
	strbuf_release(&svg);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		model_test(an_entity),
		model_test(requesters_have_an_arrow_for_each_difference),
		model_test(a_run),
		model_test(a_step_that_nothing_leads_to),
		model_test(a_batch),
		model_test(what_xml_reads_otherwise_is_escaped),
		model_test(characters_that_xml_has_no_place_for),
		model_test(a_long_expression_is_cut),
		model_test(the_same_definition_is_the_same_picture),
		model_test(no_definition_has_texts_that_overlap),
		model_test(definitions_at_their_limits_are_drawn),
		model_test(more_than_eight_ways_of_one_step_are_summed_up),
		model_test(a_picture_that_is_too_large_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
