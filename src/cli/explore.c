/*
 * hapax explore: definitions walked through by the simulator, without a server and without a store. The engine's own code goes
 * every way that crashes, pauses, lost answers and people who click twice can lead it; see trial/trial.h.
 *
 * Exit codes: 0 no rule was broken, 1 one was (the story is on standard output), 2 what was given cannot be explored.
 */
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/duration.h"
#include "cli/check_report.h"
#include "cli/drill.h"
#include "cli/local.h"
#include "cli/out_file.h"
#include "cli/saved_test.h"
#include "cli/terminal.h"
#include "trial/trial.h"

#define ARENA_BYTES_MAX (1u << 30)
#define REPORT_BYTES_MAX (16u << 20)
/* What `hapax check` looks at: so much is done in a moment. */
#define HINT_EDGES_MAX 20000
#define HINT_DEFINITIONS_MAX 8
#define HINT_STEPS_MAX 40
#define PAGE_BYTES_MAX (64u << 20)
#define SECONDS_MAX 3600

static enum hx_code read_number(const struct command_args *args, const char *option, uint64_t min, uint64_t max,
				uint64_t *ret, struct hx_error *err)
{
	const char *text = command_value(args, option);
	char *end = NULL;
	unsigned long long n = text ? strtoull(text, &end, 10) : 0;

	if (!text || text[0] < '0' || text[0] > '9' || *end || n < min || n > max)
		return error_set(err, HX_VALIDATION_ERROR, "--%s is a number from %llu to %llu", option,
				 (unsigned long long)min, (unsigned long long)max);
	*ret = n;
	return HX_OK;
}

static enum hx_code read_options(const struct command_args *args, struct trial_options *o, struct hx_error *err)
{
	static const struct {
		const char *name;
		unsigned min, max;
		size_t at;
	} counts[] = {
		{"nodes", 1, TRIAL_NODES_MAX, offsetof(struct trial_options, nodes)},
		{"callers", 1, TRIAL_CALLERS_MAX, offsetof(struct trial_options, callers)},
		{"together", 1, TRIAL_MEMBERS_MAX, offsetof(struct trial_options, together)},
		{"crashes", 0, TRIAL_MISHAPS_MAX, offsetof(struct trial_options, crashes)},
		{"pauses", 0, TRIAL_MISHAPS_MAX, offsetof(struct trial_options, pauses)},
		{"lost", 0, TRIAL_MISHAPS_MAX, offsetof(struct trial_options, lost)},
		{"failures", 0, TRIAL_MISHAPS_MAX, offsetof(struct trial_options, failures)},
		{"mishaps", 0, TRIAL_MISHAPS_MAX, offsetof(struct trial_options, mishaps)},
	};
	enum hx_code code = HX_OK;
	uint64_t n;

	for (size_t i = 0; i < sizeof counts / sizeof *counts && !code; i++) {
		code = read_number(args, counts[i].name, counts[i].min, counts[i].max, &n, err);
		if (!code)
			*(unsigned *)((char *)o + counts[i].at) = (unsigned)n;
	}
	if (!code)
		code = read_number(args, "seconds", 1, SECONDS_MAX, &n, err);
	if (!code)
		o->edges_max = n * TRIAL_EDGES_A_SECOND;
	return code ? code : read_number(args, "seed", 0, INT64_MAX, &o->seed, err);
}

/* Of a clock: what a person sees of it, and when it is to end. */
struct pace {
	struct mono_time told, until;
};

static bool is_over(void *context)
{
	return clock_mono(clock_system()).ns >= ((const struct pace *)context)->until.ns;
}

static void tell_progress(void *context, const char *scenario, const struct explore_report *so_far)
{
	char line[200];

	if (!terminal_is_due(&((struct pace *)context)->told))
		return;
	snprintf(line, sizeof line, "explore: %s: %llu states, %llu edges", scenario,
		 (unsigned long long)so_far->states, (unsigned long long)so_far->edges);
	terminal_tell(line);
}

static enum hx_code read_for(const char *text, struct trial_options *o, struct pace *pace, struct hx_error *err)
{
	int64_t ms;
	enum hx_code code = duration_parse("--for", slice_str(text), err, &ms);

	if (code)
		return code;
	pace->until = mono_add_ms(clock_mono(clock_system()), ms);
	o->is_over = is_over;
	return HX_OK;
}

/* What is wrong with the files goes where what is wrong always goes: the result is the exploration. */
static enum hx_code load(const struct command_args *args, struct arena *arena, struct definition_set *set,
			 struct definition_set *old, struct trial_world *world, struct hx_error *err)
{
	const char *path = command_value(args, "world");
	struct findings findings;

	findings_init(&findings, arena);
	for (size_t i = 0; i < args->operands_n; i++)
		definition_set_load(args->operands[i], arena, &findings, set);
	definition_set_check(set->items, set->n, /* config= */ NULL, &findings);
	if (command_value(args, "diff"))
		definition_set_load(command_value(args, "diff"), arena, &findings, old);
	definition_set_check(old->items, old->n, /* config= */ NULL, &findings);
	if (!args->operands_n && !command_value(args, "worker"))
		return error_set(err, HX_VALIDATION_ERROR, "explore wants PATH…, or --worker");
	if (command_value(args, "worker") && (command_value(args, "diff") || command_value(args, "save-test")))
		return error_set(err, HX_VALIDATION_ERROR,
				 "--diff and --save-test are for definitions, and not for --worker");
	LOCAL_STRBUF(text, CONFIG_BYTES_MAX + 1);
	*world = (struct trial_world){0};
	if (path && file_load(path, &text, &findings))
		trial_world_parse(path, strbuf_slice(&text), arena, &findings, world);
	if (!findings.errors &&
	    !command_value(args, "worker")) /* the steps of code have names that nobody knows before */
		trial_world_check(world, set, &findings);
	for (const struct finding *f = findings.first; f; f = f->next) {
		LOCAL_STRBUF(line, CHECK_REPORT_BYTES_MAX);

		finding_print(f, &line);
		if (f->severity == FINDING_ERROR)
			fprintf(stderr, "%s\n", line.p);
	}
	if (findings.errors)
		return error_set(err, HX_VALIDATION_ERROR,
				 "%zu error%s: there is nothing to explore before these are mended", findings.errors,
				 findings.errors == 1 ? "" : "s");
	return HX_OK;
}

static enum hx_code check_forms(const struct command_args *args, struct hx_error *err)
{
	int n = (command_value(args, "json") != NULL) + (command_value(args, "junit") != NULL) +
		(command_value(args, "sarif") != NULL);

	return n > 1 ? error_set(err, HX_VALIDATION_ERROR,
				 "--json, --junit and --sarif are three forms of one report: take one")
		     : HX_OK;
}

static void print(const struct command_args *args, const struct trial_report *report,
		  const struct trial_options *options, struct strbuf *out)
{
	if (command_value(args, "json"))
		trial_report_json(report, options, out);
	else if (command_value(args, "junit"))
		trial_report_junit(report, out);
	else if (command_value(args, "sarif"))
		trial_report_sarif(report, out);
	else
		trial_report_words(report, options, out);
	fputs(out->p, stdout);
}

void explore_hint(const struct definition_set *set, struct arena *arena, struct strbuf *out)
{
	static const struct trial_options options = {.nodes = 2,
						     .callers = 2,
						     .together = 2,
						     .crashes = 1,
						     .pauses = 1,
						     .lost = 1,
						     .failures = 1,
						     .mishaps = 1,
						     .edges_max = HINT_EDGES_MAX,
						     .brief = true};
	struct trial_report *report = arena_zalloc(arena, sizeof *report);
	struct trial_world *world = arena_zalloc(arena, sizeof *world);
	const struct trial_story *story;
	struct hx_error err;
	size_t steps = 0;

	for (size_t i = 0; i < set->n; i++)
		steps += set->items[i]->steps_n;
	if (!report || !world || set->n > HINT_DEFINITIONS_MAX || steps > HINT_STEPS_MAX ||
	    trial_run(set, world, &options, arena, report, &err) || !report->story)
		return;
	story = report->story;
	strbuf_addf(out, "%s:%zu: explore: %s: %s; `hapax explore` tells how\n", story->file, story->line,
		    trial_rule_name(story->rule), story->broken);
}

static enum hx_code write_page(const char *path, const struct trial_report *report, const struct trial_options *options,
			       const struct definition_set *set, struct hx_error *err)
{
	LOCAL_STRBUF(page, PAGE_BYTES_MAX);

	trial_report_html(report, options, set, &page);
	return page.failed ? strbuf_error(&page, err) : out_file_write(path, strbuf_slice(&page), err);
}

static enum hx_code save_test(const struct command_args *args, const struct trial_report *report,
			      const struct definition_set *set, const struct trial_world *world, struct arena *arena,
			      struct hx_error *err)
{
	struct saved_test saved = {command_value(args, "save-test"), args->operands_n, args->operands,
				   command_value(args, "world")};

	if (!saved.path || !report->story || !report->story->events_n)
		return HX_OK;
	return saved_test_write(&saved, set, world, report->story, arena, err);
}

static enum hx_code walk(const struct command_args *args, const struct definition_set *set,
			 const struct trial_world *world, const struct trial_options *options, struct arena *arena,
			 struct trial_report *report, struct hx_error *err)
{
	const struct drill_files files = {args->operands, args->operands_n};
	const char *command = command_value(args, "worker");

	return command ? drill_run(command, &files, world, options, arena, report, err)
		       : trial_run(set, world, options, arena, report, err);
}

enum hx_code explore_run(const struct command_args *args, struct hx_error *err)
{
	struct pace pace = {{0}, {INT64_MAX}};
	struct trial_options options = {.progress = terminal_is_watched() ? tell_progress : NULL, .context = &pace};
	struct definition_set *set = calloc(1, sizeof *set), *old = calloc(1, sizeof *old);
	struct trial_report *report = calloc(1, sizeof *report);
	struct trial_world world;
	enum hx_code code = set && old && report ? HX_OK : error_set(err, HX_NO_MEMORY, "no memory");
	LOCAL_ARENA(arena, ARENA_BYTES_MAX);

	LOCAL_STRBUF(out, REPORT_BYTES_MAX);
	options.brief = command_value(args, "brief");
	options.old = command_value(args, "diff") ? old : NULL;
	if (!code)
		code = check_forms(args, err);
	if (!code)
		code = read_options(args, &options, err);
	if (!code && command_value(args, "for"))
		code = read_for(command_value(args, "for"), &options, &pace, err);
	if (!code)
		code = load(args, &arena, set, old, &world, err);
	if (!code)
		code = walk(args, set, &world, &options, &arena, report, err);
	if (options.progress)
		terminal_tell("");
	if (!code && command_value(args, "html"))
		code = write_page(command_value(args, "html"), report, &options, set, err);
	if (!code) {
		print(args, report, &options, &out);
		code = save_test(args, report, set, &world, &arena, err);
	}
	if (!code) {
		if (report->story)
			code = error_set(err, HX_PROMISE_BROKEN, "a rule was broken: %s", report->story->broken);
	}
	free(set);
	free(old);
	free(report);
	return code;
}
