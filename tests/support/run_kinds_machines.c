/* The definitions of run_kinds.h. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#include "flow/run.h"
#include "support/run_kinds.h"

#define ACTIONS                                                                                                        \
	"\"kind\":\"run\",\"actions\":{"                                                                               \
	"\"do\":{\"kind\":\"http\",\"url\":\"http://127.0.0.1:1/\",\"effect\":\"keyed\"},"                             \
	"\"pack\":{\"kind\":\"worker\",\"queue\":\"pack\",\"effect\":\"keyed\"}},\"steps\":["
#define RESERVE "{\"name\":\"reserve\",\"type\":\"task\",\"action\":\"do\",\"compensate\":\"do\"}"
#define CHARGE "{\"name\":\"charge\",\"type\":\"task\",\"action\":\"do\",\"on_unknown\":\"hold\"}"
#define DEFINITIONS_N 7

/* Parsed once, and kept as long as the program lives. All have a second version, which says the same. */
const struct run_machine *kind_machine_of(const void *context, struct slice name, int64_t version)
{
	static const char *const texts[DEFINITIONS_N][2] = {
		{"order", "{\"workflow\":\"order\"," ACTIONS RESERVE "," CHARGE "]}"},
		{"await", "{\"workflow\":\"await\"," ACTIONS RESERVE
			  ",{\"name\":\"paid\",\"type\":\"external_event\",\"event\":\"payment\"}," CHARGE "]}"},
		{"sign", "{\"workflow\":\"sign\"," ACTIONS "{\"name\":\"ok\",\"type\":\"approval\"}," CHARGE "]}"},
		{"parcel",
		 "{\"workflow\":\"parcel\"," ACTIONS
		 "{\"name\":\"pack\",\"type\":\"task\",\"action\":\"pack\",\"retry\":{\"initial\":\"1h\",\"max\":\"1h\"}}," CHARGE
		 "]}"},
		{"narrow",
		 "{\"workflow\":\"narrow\",\"kind\":\"run\",\"limits\":{\"concurrency\":{\"max\":1}},"
		 "\"actions\":{\"do\":{\"kind\":\"http\",\"url\":\"http://127.0.0.1:1/\",\"effect\":\"keyed\","
		 "\"limits\":{\"concurrency\":{\"max\":1}}}},\"steps\":[" CHARGE "]}"},
		{"family", "{\"workflow\":\"family\"," ACTIONS
			   "{\"name\":\"sub\",\"type\":\"child\",\"workflow\":\"leaf\"}," CHARGE "]}"},
		{"leaf", "{\"workflow\":\"leaf\"," ACTIONS CHARGE "]}"},
	};
	static struct arena arena;
	static const struct run_machine *machines[DEFINITIONS_N][2];
	bool second = version == 2;

	(void)context;
	for (size_t i = 0; i < DEFINITIONS_N; i++) {
		const struct run_definition *definition;
		struct findings findings;

		if (!slice_is(name, texts[i][0]))
			continue;
		if (machines[i][second])
			return machines[i][second];
		if (!arena.max_bytes)
			arena_init(&arena, 16u << 20);
		findings_init(&findings, &arena);
		run_definition_parse(texts[i][0], slice_str(texts[i][1]), &arena, &findings, &definition);
		assert_non_null(definition);
		return machines[i][second] = run_machine_new(definition, 1 + second, &arena);
	}
	return NULL;
}
