/*
 * For tests of the configuration of the gate: texts that are clean or refused, an option in the file or in a route, and its policy.
 */
#ifndef HX_TESTS_UNIT_GATE_POLICIES_H
#define HX_TESTS_UNIT_GATE_POLICIES_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/json_pointer.h"
#include "gate/policy.h"
#include "model/reader.h"
#include "model/text.h"

static struct arena arena;
static struct findings findings;
static struct gate_config config;
static struct strbuf printed;

static inline int set_up(void **state)
{
	(void)state;
	arena_init(&arena, 256u << 20);
	strbuf_init(&printed, 16u << 20);
	return 0;
}

static inline int tear_down(void **state)
{
	(void)state;
	strbuf_release(&printed);
	arena_release(&arena);
	return 0;
}

/* Single quotes are written for double ones. */
static inline void parse(const char *text)
{
	struct slice copy = arena_copy(&arena, slice_str(text));

	for (size_t i = 0; i < copy.n; i++)
		if (copy.p[i] == '\'')
			((char *)copy.p)[i] = '"';
	findings_init(&findings, &arena);
	gate_config_parse("g.json", copy, &arena, &findings, &config);
	strbuf_reset(&printed);
	for (const struct finding *f = findings.first; f; f = f->next) {
		finding_print(f, &printed);
		strbuf_add_char(&printed, '\n');
	}
}

static inline void clean(const char *text)
{
	parse(text);
	if (findings.errors || findings.warnings)
		fail_msg("%s\nfor %s", printed.p, text);
}

/* Exactly one finding, an error in line 1 that says this. */
static inline void refused(const char *text, const char *said)
{
	parse(text);
	if (findings.errors != 1 || findings.warnings || strncmp(printed.p, "g.json:1: error: ", 17) != 0 ||
	    !strstr(printed.p, said))
		fail_msg("%s\ninstead of \"%s\" for %s", printed.p, said, text);
}

/* The same for an option, in the file and in a route; `option` is "'name': value". */
static inline void option_refused(const char *option, const char *said)
{
	refused(text_printf(&arena, "{ %s }", option), said);
	refused(text_printf(&arena, "{ 'routes': [ { 'match': 'POST /x', %s } ] }", option), said);
	assert_non_null(strstr(printed.p, ": route POST /x: "));
}

/* The policy of an option, out of the file and then out of a route. */
static inline const struct gate_policy *option_in_file(const char *option)
{
	clean(text_printf(&arena, "{ %s }", option));
	return &config.policy;
}

static inline const struct gate_policy *option_in_route(const char *option)
{
	clean(text_printf(&arena, "{ 'routes': [ { 'match': 'POST /x', %s } ] }", option));
	assert_int_equal(config.routes_n, 1);
	return &config.routes[0].policy;
}

static inline const struct gate_policy *match(const char *method, const char *path)
{
	return gate_config_match(&config, slice_str(method), slice_str(path));
}

static inline void assert_slice(struct slice slice, const char *text)
{
	if (!slice_is(slice, text))
		fail_msg("\"%.*s\" is not \"%s\"", SLICE_ARGS(slice), text);
}

static inline void assert_defaults(const struct gate_policy *p)
{
	assert_true(p->guard);
	assert_true(p->required);
	assert_int_equal(p->key_n, 1);
	assert_string_equal(p->key[0].text, "header:Idempotency-Key");
	assert_false(p->any_caller);
	assert_int_equal(p->caller.kind, GATE_SOURCE_NONE);
	assert_int_equal(p->max_key_length, 255);
	assert_false(p->fingerprint.off);
	assert_int_equal(p->fingerprint.pointers_n, 0);
	assert_true(p->scope_endpoint);
	assert_int_equal(p->scope_n, 0);
	assert_int_equal(p->tenant.kind, GATE_SOURCE_NONE);
	assert_int_equal(p->ttl_ms, 86400000);
	assert_int_equal(p->processing_ttl_ms, 60000);
	assert_int_equal(p->upstream_timeout_ms, 30000);
	assert_int_equal(p->read_timeout_ms, 10000);
	assert_int_equal(p->replay.kind, REPLAY_SAFE);
	assert_true(p->status_headers);
	assert_int_equal(p->cache_errors, GATE_CACHE_NONE);
	assert_false(p->hold);
	assert_int_equal(p->max_request_bytes, 1048576);
	assert_int_equal(p->max_stored_bytes, 1048576);
}

#define TEST(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

#endif
