/* Asking a real server why something waits, until it says this reason: see test_why.c, and why_jobs.h for those of jobs. */
#ifndef HX_TESTS_HTTP_WHY_H
#define HX_TESTS_HTTP_WHY_H

#include <fcntl.h>
#include <fnmatch.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "act/port.h"
#include "base/id.h"
#include "flow/why.h"

#include "support/await.h"
#include "support/must_hold.h"
#include "support/run_scene.h"

#define STRING_OF_TEXT(text) #text
#define STRING_OF(macro) STRING_OF_TEXT(macro)
#define JOBS "/api/v1/jobs"
#define BATCHES "/api/v1/batches"
#define TIME "20[0-9][0-9]-[0-9]*T[0-9]*:[0-9]*.[0-9]*Z"
#define LASTS ", whose lease lasts until " TIME " unless it is renewed"
#define IDLE "; no call of it is under way on the node that answers"

static bool seen[2][WHY_REASONS_N];

/* ---- asking ---- */

static struct reply *ask(struct scene *scene, const char *id)
{
	char path[300];

	snprintf(path, sizeof path, "/api/v1/why/%.280s", id);
	return scene_must(scene, 0, "GET", path, NULL, 200, "");
}

static bool has_reason(struct scene *scene, const char *id, enum why_reason reason)
{
	return strcmp(reply_text(ask(scene, id), "reason"), why_reason_name(reason)) == 0;
}

/* What waits for a person is in the list of all that does, as this kind, and nothing else is. */
static void in_attention(struct scene *scene, const char *id, enum why_reason reason)
{
	static const char *const kinds[WHY_REASONS_N] = {
		[WHY_ENTITY_HELD] = "held_claim",       [WHY_JOB_PARKED] = "parked_*",
		[WHY_FUNCTION_HELD] = "held_function",  [WHY_FUNCTION_UNPOLLED] = "unpolled_function",
		[WHY_RUN_FAILED] = "failed_run",        [WHY_RUN_UNKNOWN] = "unknown_step",
		[WHY_RUN_APPROVAL] = "approval",        [WHY_RUN_NOT_UNDONE] = "failed_compensation",
		[WHY_RUN_PAUSED] = "paused_run",        [WHY_BATCH_UNKNOWN] = "unknown_items",
		[WHY_BATCH_CLEANUP] = "stuck_teardown", [WHY_SCHEDULE_DUE] = "late_schedule",
	};
	char pattern[400], at[200];

	scene_must(scene, 0, "GET", "/api/v1/attention?limit=500", NULL, 200, "");
	snprintf(at, sizeof at, "\"id\":\"%.150s\"", id);
	snprintf(pattern, sizeof pattern, "*{\"kind\":\"%s\",%.190s,*", kinds[reason] ? kinds[reason] : "", at);
	if (!kinds[reason] && strstr(scene->last.body, at))
		fail_msg("%s waits for nobody (%s), and is in %s", id, why_reason_name(reason), scene->last.body);
	if (kinds[reason] && fnmatch(pattern, scene->last.body, 0) != 0)
		fail_msg("%s waits for a person (%s), and is not like %s in %s", id, why_reason_name(reason), pattern,
			 scene->last.body);
}

/* Waits until that is the reason; then the sentence has to be this. */
static void because(struct scene *scene, const char *id, enum why_reason reason, const char *pattern)
{
	int64_t until = await_now_ms() + RUN_ARRIVE_MS;

	while (!has_reason(scene, id, reason)) {
		if (await_now_ms() > until)
			fail_msg("%s was to wait because of %s: %s", id, why_reason_name(reason), scene->last.body);
		await_pause();
	}
	assert_string_equal(reply_text(&scene->last, "id"), id);
	if (fnmatch(pattern, reply_text(&scene->last, "why"), 0) != 0)
		fail_msg("%s was to wait because it %s\nand it is said that it %s", id, pattern,
			 reply_text(&scene->last, "why"));
	seen[scene->store->kind == STORE_POSTGRES][reason] = true;
	in_attention(scene, id, reason);
}

/* The same for what a node will put right at its next look: it is written again until it was seen. */
static void because_of_row(struct scene *scene, const char *sql, const char *id, enum why_reason reason,
			   const char *pattern)
{
	AWAIT(RUN_ARRIVE_MS, (scene_sql(scene, sql, NULL, 0), has_reason(scene, id, reason)));
	if (fnmatch(pattern, reply_text(&scene->last, "why"), 0) != 0)
		fail_msg("%s: %s", id, reply_text(&scene->last, "why"));
	seen[scene->store->kind == STORE_POSTGRES][reason] = true;
}

/* Runs under limits. */

static const char cargo[] = "{'workflow':'cargo','kind':'run','limits':{'concurrency':{'by':'.input.customer','max':1},"
			    "'rate':{'by':'.input.customer','max':3,'per':'1h'}},"
			    "'actions':{'load':{'kind':'http','url':'@/load','effect':'keyed'}},"
			    "'steps':[{'name':'load','type':'task','action':'load'}]}";

static const char family[] = "{'workflow':'family','kind':'run','steps':["
			     "{'name':'kid','type':'repeat','steps':[{'name':'further','type':'parallel','branches':{"
			     "'b':[{'name':'ask','type':'approval'}]}}],'until':'true'}]}";

static const char mailing[] =
	"{'workflow':'mailing','kind':'run','limits':{'debounce':{'by':'.input.customer','for':'1h','at_most':'2h'}},"
	"'steps':[{'name':'nap','type':'wait','for':'1h'}]}";

#endif
