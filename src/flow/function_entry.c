/* An entry of a journal: its words, its key, and how the wire has it. See function.h. */
#include "base/digits.h"
#include "base/id.h"
#include "base/json_string.h"
#include "base/json_walk.h"
#include "base/json_write.h"
#include "flow/function_parts.h"

const char *const entry_kinds[] = {
#define X(name, word) word,
	ENTRY_KINDS(X)
#undef X
		NULL};

const char *const entry_states[] = {
#define X(name, word) word,
	ENTRY_STATES(X)
#undef X
		NULL};

struct entry_policy entry_policy(const struct function_entry *entry)
{
	struct slice rest = entry->policy;
	struct entry_policy policy = {slice_str(POLICY_CLAIMED), slice_str(POLICY_HOLD), /* doubt= */ false};

	if (!rest.p)
		return policy;
	policy.effect = slice_cut(&rest, ' ');
	policy.on_unknown = slice_cut(&rest, ' ');
	policy.doubt = rest.n > 0;
	return policy;
}

bool entry_is_held(const struct function_entry *entry)
{
	return entry->state == ENTRY_UNKNOWN && slice_is(entry_policy(entry).on_unknown, POLICY_HOLD);
}

static void add_encoded(struct slice name, struct strbuf *text)
{
	static const char plain[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~";

	for (size_t i = 0; i < name.n; i++)
		if (name.p[i] && strchr(plain, name.p[i]))
			strbuf_add_char(text, name.p[i]);
		else
			strbuf_addf(text, "%%%02X", (unsigned char)name.p[i]);
}

void entry_write_key(int64_t run, const struct function_entry *entry, struct strbuf *text)
{
	strbuf_addf(text, "%s/", id_text("run", run).text);
	add_encoded(entry->name, text);
	strbuf_addf(text, "/%lld%s", (long long)entry->n, entry->kind == ENTRY_UNDO ? "/undo" : "");
	if (entry->redo)
		strbuf_addf(text, "/%lld", (long long)entry->redo);
}

void entry_write_name(const struct function_entry *entry, struct strbuf *text)
{
	strbuf_add_slice(text, entry->name);
	if (entry->n)
		strbuf_addf(text, "#%lld", (long long)entry->n);
}

bool entry_split_name(struct slice called, struct slice *ret_name, int64_t *ret_n)
{
	size_t at = called.n;
	int64_t n = 0;

	while (at > 0 && called.p[at - 1] >= '0' && called.p[at - 1] <= '9')
		at--;
	if (at < 2 || at == called.n || called.n - at > 9 || called.p[at - 1] != '#' || called.p[at] == '0')
		return false;
	for (size_t i = at; i < called.n; i++)
		n = n * 10 + (called.p[i] - '0');
	*ret_name = slice_of(called.p, at - 1);
	*ret_n = n;
	return true;
}

/* What it was asked with, as it was written: the members of an object, without its braces. */
static void add_detail(struct slice detail, struct strbuf *text)
{
	struct slice inner = slice_trim(slice_of(detail.p + 1, detail.n - 2));

	if (!inner.n)
		return;
	strbuf_add_char(text, ',');
	strbuf_add_slice(text, inner);
}

static void add_policy(const struct function_entry *entry, struct strbuf *text)
{
	struct entry_policy policy = entry_policy(entry);

	json_more_text(text, "effect", policy.effect);
	json_more_text(text, "onUnknown", policy.on_unknown);
}

static void add_retry(const struct function_entry *entry, int64_t now_ms, struct strbuf *text)
{
	json_more_int(text, "retryAfterMs", entry->wake_at > now_ms ? entry->wake_at - now_ms : 0);
}

static void add_key(int64_t run, const struct function_entry *entry, struct strbuf *text)
{
	LOCAL_STRBUF(key, 4 * FUNCTION_NAME_BYTES_MAX + 128);

	entry_write_key(run, entry, &key);
	json_more_text(text, "key", strbuf_slice(&key));
}

void entry_write(int64_t run, const struct function_entry *entry, int64_t now_ms, bool output, struct strbuf *text)
{
	strbuf_add_char(text, '{');
	json_more_int(text, "i", entry->i);
	json_more_int(text, "seq", entry->seq);
	json_more_word(text, "kind", entry_kinds[entry->kind]);
	json_more_text(text, "name", entry->name);
	json_more_int(text, "n", entry->n);
	json_more_word(text, "state", entry->state == ENTRY_RETRY ? "failed" : entry_states[entry->state]);
	json_more_int(text, "attempt", entry->attempt);
	if (entry_is_step(entry->kind))
		add_policy(entry, text);
	if (entry->redo)
		add_key(run, entry, text);
	add_detail(entry->detail, text);
	if (entry->state == ENTRY_RETRY)
		add_retry(entry, now_ms, text);
	if (entry->kind == ENTRY_SLEEP)
		json_more_time(text, "wakeAt", entry->wake_at);
	if (entry->kind == ENTRY_CHILD && entry->child)
		json_more_id(text, "run", "run", entry->child);
	if (output && entry->output.p)
		json_more_json(text, "output", entry->output);
	if (entry->error.p &&
	    (entry->state == ENTRY_FAILED || entry->state == ENTRY_RETRY || entry->state == ENTRY_UNKNOWN))
		json_more_json(text, "error", entry->error);
	strbuf_add_char(text, '}');
}
