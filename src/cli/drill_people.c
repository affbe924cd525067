/* People, who do what a run waits for when nobody else does anything, and time: see drill.h. */
#include <stdio.h>

#include "base/json_string.h"
#include "base/json_walk.h"
#include "cli/drill_parts.h"

static const char *encoded(struct drill_play *p, const char *name)
{
	LOCAL_STRBUF(out, 4096);

	for (; *name; name++)
		if ((*name >= 'a' && *name <= 'z') || (*name >= 'A' && *name <= 'Z') ||
		    (*name >= '0' && *name <= '9') || *name == '-' || *name == '_')
			strbuf_add_char(&out, *name);
		else
			strbuf_addf(&out, "%%%02X", (unsigned char)*name);
	return arena_keep(&p->arena, &out).p;
}

static bool send_event(struct drill_play *p, struct drill_asked *a, unsigned n)
{
	struct json data = trial_world_event(p->drill->world, a->event);
	char path[1200];
	LOCAL_STRBUF(body, 1u << 20);

	snprintf(path, sizeof path, "/api/v1/workflow-runs/%s/events/%s", a->run, encoded(p, a->event));
	strbuf_addf(&body, "{\"id\":\"%s-%u\",\"data\":%.*s}", a->run, n, SLICE_ARGS(data.raw));
	drill_tell(p, "caller", LANE_CALLER, "sends the event %s%s", a->event, n % 2 ? ", once more" : "");
	return drill_verb(p, path, body.p);
}

static bool decide(struct drill_play *p, struct drill_asked *a)
{
	bool no = p->schedule->people == PEOPLE_REJECT;
	char path[1200], body[100];

	snprintf(path, sizeof path, "/api/v1/workflow-runs/%s/approvals/%s", a->run, encoded(p, a->name));
	snprintf(body, sizeof body, "{\"decision\":\"%s\",\"by\":\"person\"}", no ? "reject" : "approve");
	if (!drill_verb(p, path, body))
		return false;
	drill_tell(p, "person", LANE_CALLER, "%s: %s", no ? "rejects" : "approves", a->name);
	return true;
}

/* What is waited for is done once, when nobody else does anything. */
static bool oblige(struct drill_play *p)
{
	if (p->schedule->people == PEOPLE_SILENT)
		return false;
	for (size_t i = 0; i < p->asked_n; i++) {
		struct drill_asked *a = &p->asked[i];

		if (a->sent)
			continue;
		a->sent = 1;
		if (!a->event && decide(p, a))
			return true;
		if (a->event && send_event(p, a, 2 * (unsigned)i)) {
			if (p->schedule->people == PEOPLE_TWICE)
				(void)send_event(p, a, 2 * (unsigned)i + 1);
			return true;
		}
	}
	return false;
}

/* A step that is in doubt, and that nobody but a person can decide on: we have seen whether it was executed. */
static bool resolve(struct drill_play *p, const char *run, struct json shown)
{
	struct json steps, step;

	if (!json_find(shown, slice_str("steps"), &steps))
		return false;
	for (struct json_iter it = json_iter_of(steps); json_iter_element(&it, &step);) {
		const char *status = drill_member_text(p, step, "status"), *name = drill_member_text(p, step, "name");
		struct drill_effect *e;
		char path[1200];
		LOCAL_STRBUF(body, 1u << 20);

		if (!status || !name || strcmp(status, "UNKNOWN") != 0)
			continue;
		e = drill_effect_of(p, run, name, /* undo= */ false);
		if (e && e->done)
			strbuf_addf(&body, "{\"outcome\":\"done\",\"output\":%.*s}",
				    SLICE_ARGS(e->output.raw.p ? e->output.raw : slice_str("null")));
		else
			strbuf_add_str(&body, "{\"outcome\":\"not_done\"}");
		snprintf(path, sizeof path, "/api/v1/workflow-runs/%s/steps/%s/resolve", run, encoded(p, name));
		if (drill_verb(p, path, body.p)) {
			drill_tell(p, "person", LANE_CALLER, "has looked: %s was %s", name,
				   e && e->done ? "done" : "not done");
			return true;
		}
	}
	return false;
}

static struct json show(struct drill_play *p, const char *run)
{
	char path[200];
	int status;

	snprintf(path, sizeof path, "/api/v1/workflow-runs/%s", run);
	return json_trust(drill_ask(p, "GET", path, slice_of(NULL, 0), &status));
}

bool drill_is_over(const char *status)
{
	return status &&
	       (strcmp(status, "COMPLETED") == 0 || strcmp(status, "FAILED") == 0 || strcmp(status, "CANCELLED") == 0);
}

bool drill_be_people(struct drill_play *p)
{
	int64_t ms;

	p->run = show(p, p->runs[0]);
	p->status = drill_member_text(p, p->run, "status");
	if (drill_is_over(p->status)) {
		p->ended = true;
		return true;
	}
	for (size_t i = 0; i < p->runs_n; i++)
		if (resolve(p, p->runs[i], i ? show(p, p->runs[i]) : p->run))
			return true;
	if (oblige(p))
		return true;
	ms = drill_skip(p, "{\"toNext\":true}");
	if (ms >= 1000)
		drill_tell_time(p, ms, "");
	return ms > 0;
}
