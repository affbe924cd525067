/* See hook.h. */
#include "model/hook.h"

#include <stdio.h>

#include "base/json_pointer.h"
#include "model/fields.h"
#include "model/header.h"

#define WHERE_BYTES 120
#define DEFAULT_WINDOW_MS 300000
#define DEFAULT_KEEP_MS (INT64_C(7) * 24 * 60 * 60 * 1000)
#define PRIORITY_MAX 1000

static const char *const schemes[] = {[HOOK_STRIPE] = "stripe",
				      [HOOK_GITHUB] = "github",
				      [HOOK_STANDARD] = "standard-webhooks",
				      [HOOK_HMAC] = "hmac-sha256",
				      NULL};

bool hook_id_is_signed(const struct hook_config *hook)
{
	return hook->id_pointer || hook->scheme == HOOK_STANDARD;
}

/* ---- its fields ---- */

static void read_secrets(const struct reader *r, const struct json_node *node, const struct field *field, void *ret)
{
	struct hook_config *hook = ret;

	if (!reader_array(r, node, field->name, 1, HOOK_SECRETS_MAX))
		return;
	json_node_for_each(element, node) if (reader_text(r, element, "a secret", HOOK_TEXT_BYTES_MAX,
							  &hook->secrets[hook->secrets_n])) hook->secrets_n++;
}

/* "/data/id" in the body, or "header:X-Event-Id". */
static void read_id(const struct reader *r, const struct json_node *node, const struct field *field, void *ret)
{
	static const char front[] = "header:";
	struct hook_config *hook = ret;
	const char *text;
	struct hx_error err;

	if (!reader_text(r, node, field->name, HOOK_TEXT_BYTES_MAX, &text))
		return;
	hook->id_pointer = hook->id_header = NULL;
	if (strncmp(text, front, sizeof front - 1) == 0 && header_name_is_token(slice_str(text + sizeof front - 1)))
		hook->id_header = text + sizeof front - 1;
	else if (json_pointer_check(slice_str(text), &err) == HX_OK)
		hook->id_pointer = text;
	else
		reader_report(r, node->at.line, "value", "id is a JSON pointer, or header:NAME: %s", err.detail);
}

static void read_expression(const struct reader *r, const struct json_node *node, const struct field *field, void *ret)
{
	struct hx_error err;

	if (reader_string(r, node, field->name) && expression_parse(node->string, r->arena, &err, ret) != HX_OK)
		reader_report(r, node->at.line, "expression", "%s: %s", field->name, err.detail);
}

#define EXPRESSION(member) FIELD_OWN_AT(struct hook_config, member, const struct expression *, read_expression)

/* clang-format off */
static const struct field verify_fields[] = {
	{"scheme",  FIELD_CHOICE(struct hook_config, scheme, schemes), .required = true},
	{"secrets", FIELD_OWN(read_secrets), .required = true},
	{"window",  FIELD_DURATION(struct hook_config, window_ms)},
	{"header",  FIELD_TEXT(struct hook_config, header, HOOK_TEXT_BYTES_MAX)},
	{0}};
static const struct field signal_fields[] = {
	{"workflow", FIELD_NAME(struct hook_config, workflow), .required = true},
	{"key",      EXPRESSION(key), .required = true},
	{"event",    FIELD_TEXT(struct hook_config, event, HOOK_TEXT_BYTES_MAX), .required = true},
	{"data",     EXPRESSION(data)},
	{"start",    FIELD_BOOL(struct hook_config, start)},
	{"input",    EXPRESSION(input)},
	{0}};
static const struct field start_fields[] = {
	{"workflow", FIELD_NAME(struct hook_config, workflow), .required = true},
	{"input",    EXPRESSION(data)},
	{0}};
static const struct field fire_fields[] = {
	{"workflow", FIELD_NAME(struct hook_config, workflow), .required = true},
	{"id",       EXPRESSION(entity), .required = true},
	{"step",     FIELD_TEXT(struct hook_config, step, HOOK_TEXT_BYTES_MAX), .required = true},
	{"input",    EXPRESSION(data)},
	{0}};
static const struct field push_fields[] = {
	{"queue",    FIELD_TEXT(struct hook_config, queue, HOOK_TEXT_BYTES_MAX), .required = true},
	{"payload",  EXPRESSION(data)},
	{"priority", FIELD_INT(struct hook_config, priority, -PRIORITY_MAX, PRIORITY_MAX)},
	{0}};
static const struct field hook_fields[] = {
	{"verify",    FIELD_PART(verify_fields), .required = true},
	{"id",        FIELD_OWN(read_id)},
	{"keep",      FIELD_DURATION(struct hook_config, keep_ms)},
	{"workspace", FIELD_TEXT(struct hook_config, workspace, HOOK_TEXT_BYTES_MAX)},
	{"requester", FIELD_TEXT(struct hook_config, requester, HOOK_TEXT_BYTES_MAX)},
	{"when",      EXPRESSION(when)},
	{"signal",    FIELD_PART(signal_fields)},
	{"start",     FIELD_PART(start_fields)},
	{"fire",      FIELD_PART(fire_fields)},
	{"push",      FIELD_PART(push_fields)},
	{0}};
/* clang-format on */

/* ---- the whole ---- */

static void read_does(const struct reader *r, const struct json_node *node, struct hook_config *hook)
{
	static const char *const words[] = {
		[HOOK_SIGNALS] = "signal", [HOOK_STARTS] = "start", [HOOK_FIRES] = "fire", [HOOK_PUSHES] = "push"};
	size_t n = 0;

	for (size_t i = 0; i < sizeof words / sizeof *words; i++)
		if (json_node_member(node, words[i])) {
			hook->does = (enum hook_does)i;
			n++;
		}
	if (n != 1)
		reader_report(r, node->at.line, "value",
			      "a hook has one of signal, start, fire and push, not %zu of them", n);
}

/* Where it is not said, each scheme has its own; hmac-sha256 has none. */
static void set_id(const struct reader *r, const struct json_node *node, struct hook_config *hook)
{
	if (hook->id_pointer || hook->id_header)
		return;
	switch (hook->scheme) {
	case HOOK_STRIPE:
		hook->id_pointer = "/id";
		break;
	case HOOK_GITHUB:
		hook->id_header = "X-GitHub-Delivery";
		break;
	case HOOK_STANDARD:
		hook->id_header = "webhook-id";
		break;
	case HOOK_HMAC:
		reader_report(r, node->at.line, "value",
			      "id is missing: what names the event, a JSON pointer or header:NAME");
		break;
	}
}

static void check_verify(const struct reader *r, const struct json_node *node, const struct hook_config *hook)
{
	const struct json_node *verify = json_node_member(node, "verify");

	if (!verify || verify->type != JSON_OBJECT)
		return;
	if (json_node_member(verify, "header") && hook->scheme != HOOK_HMAC)
		reader_report(r, verify->at.line, "value", "header is for hmac-sha256: %s has its own",
			      schemes[hook->scheme]);
	if (json_node_member(verify, "window") && (hook->scheme == HOOK_HMAC || hook->scheme == HOOK_GITHUB))
		reader_warn(r, verify->at.line, "value", "window does nothing here: %s signs no time",
			    schemes[hook->scheme]);
	if (hook->header && !header_name_is_token(slice_str(hook->header)))
		reader_report(r, verify->at.line, "value", "header is the name of a header field");
}

static void read_hook(const struct reader *outer, const struct json_node *node, struct hook_config *hook)
{
	struct reader r = *outer;
	char where[WHERE_BYTES];

	*hook = (struct hook_config){.name = reader_keep(&r, node->name),
				     .line = node->name_at.line,
				     .window_ms = DEFAULT_WINDOW_MS,
				     .keep_ms = DEFAULT_KEEP_MS,
				     .workspace = "default",
				     .requester = "default"};
	snprintf(where, sizeof where, "hooks.%s", excerpt_of(node->name).text);
	r.where = where;
	if (!name_is_valid(node->name))
		reader_report(&r, node->name_at.line, "name",
			      "a name has 1 to 64 bytes of letters, digits, '_', '.' and '-'");
	if (!reader_object(&r, node, "a hook"))
		return;
	fields_read(&r, node, hook_fields, hook);
	read_does(&r, node, hook);
	set_id(&r, node, hook);
	check_verify(&r, node, hook);
	if (hook->input && !hook->start)
		reader_report(&r, node->at.line, "value",
			      "signal: input is of the run that is started: say \"start\": true");
}

void hooks_read(const struct reader *r, const struct json_node *node, struct hook_config **ret_hooks, size_t *ret_n)
{
	struct hook_config *hooks = reader_map(r, node, "hooks", HOOKS_MAX, sizeof *hooks);
	size_t n = 0;

	if (!hooks)
		return;
	json_node_for_each(member, node) read_hook(r, member, &hooks[n++]);
	if (r->arena->failed)
		return;
	*ret_hooks = hooks;
	*ret_n = n;
}
