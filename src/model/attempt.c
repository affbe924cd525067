/* See attempt.h. */
#include "model/attempt.h"

#include "base/duration.h"
#include "base/excerpt.h"
#include "base/json_number.h"

const struct run_retry run_retry_default = {
	.max_attempts = 3, .initial_ms = 1000, .max_ms = 300000, .factor_thousandths = 2000, .jitter = true};

/* In thousandths, by moving the point of the number three places and reading what it is then: no double on the way. */
static void read_factor(const struct reader *r, const struct json_node *node, const struct field *field, void *ret)
{
	struct run_retry *retry = ret;
	int64_t thousandths;

	LOCAL_STRBUF(moved, 64); /* what is longer is out of bounds, or too fine */
	if (node->type == JSON_NUMBER) {
		struct json_number number = json_number_of(node->value);

		number.shift += 3;
		json_number_append(&number, &moved);
	}
	if (node->type == JSON_NUMBER && !moved.failed &&
	    json_int64(json_trust(strbuf_slice(&moved)), NULL, &thousandths) == HX_OK && thousandths >= 1000 &&
	    thousandths <= RUN_FACTOR_MAX * 1000)
		retry->factor_thousandths = thousandths;
	else
		reader_report(r, node->at.line, "value",
			      "%s is %s; it must be a number from 1 to %d with at most three decimals", field->name,
			      excerpt_of(node->value.raw).text, RUN_FACTOR_MAX);
}

static void check_initial(const struct reader *r, const struct json_node *node, const struct run_retry *retry)
{
	const struct json_node *written = json_node_member(node, "max");
	struct reader silent = {.arena = r->arena};
	int64_t max_ms;

	if (retry->initial_ms <= retry->max_ms || (written && !reader_duration(&silent, written, "max", &max_ms)))
		return;
	reader_report(r, node->at.line, "value", "retry: initial is %s, which is more than max, %s%s",
		      duration_text(retry->initial_ms).text, duration_text(retry->max_ms).text,
		      written ? "" : " where it is not written");
}

/* clang-format off */
static const struct field retry_fields[] = {
	{"max_attempts", FIELD_INT(struct run_retry, max_attempts, 1, RUN_ATTEMPTS_MAX)},
	{"initial",      FIELD_DURATION(struct run_retry, initial_ms)},
	{"factor",       FIELD_OWN(read_factor)},
	{"max",          FIELD_DURATION(struct run_retry, max_ms)},
	{"jitter",       FIELD_BOOL(struct run_retry, jitter)},
	{0}};
/* clang-format on */

void attempt_read_retry(const struct reader *r, const struct json_node *node, const struct field *field, void *ret)
{
	if (fields_object(r, node, field->name, retry_fields, ret))
		check_initial(r, node, ret);
}

void attempt_read_on_unknown(const struct reader *r, const struct json_node *node, const struct field *field, void *ret)
{
	static const char *const names[] = {"retry", "probe", "hold", NULL};
	static const enum on_unknown choices[] = {UNKNOWN_RETRY, UNKNOWN_PROBE, UNKNOWN_HOLD};
	enum on_unknown *on_unknown = ret;
	int choice;

	if (node->type == JSON_STRING && slice_is(node->string, "revert"))
		reader_report(r, node->at.line, "on_unknown",
			      "revert is for the claims of entities; %s has retry, probe or hold",
			      strcmp(r->kind, "run") == 0 ? "a step of a run" : "an item of a batch");
	else if (reader_choice(r, node, field->name, names, &choice))
		*on_unknown = choices[choice];
}

const char *const attempt_on_5xx[] = {"failed", "unknown", NULL};

void attempt_settle_on_unknown(const struct reader *r, const struct json_node *written, const struct action *action,
			       enum on_unknown *on_unknown)
{
	if (!written)
		*on_unknown = action->effect == EFFECT_KEYED || action->effect == EFFECT_IDEMPOTENT ? UNKNOWN_RETRY
												    : UNKNOWN_HOLD;
	if (*on_unknown == UNKNOWN_PROBE && !action->probe)
		reader_report(r, written->at.line, "on_unknown", "probe needs a probe, and action %s declares none",
			      excerpt_of(slice_str(action->name)).text);
}

/* Not an error: it is as safe without one. But it says something that will not happen. */
void attempt_check_timeout(const struct reader *r, const struct json_node *timeout, const struct action *action)
{
	if (timeout && !action_has_timeout(action))
		reader_warn(r, timeout->at.line, "timeout", "action %s is of kind %s, which has no timeout",
			    excerpt_of(slice_str(action->name)).text, action_kind_name(action->kind));
}
