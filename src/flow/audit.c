/* See audit.h. */
#include "flow/audit_parts.h"

#include "base/id.h"

#define LIST_BYTES_MAX (1u << 20)
#define PREFIX_BYTES_MAX 64

static const struct audit_pass *const passes[] = {&audit_histories, &audit_nouns, &audit_steps, &audit_ledgers,
						  &audit_batches};
enum { PASSES_N = sizeof passes / sizeof *passes };

void audit_name(struct auditor *a, const char *prefix)
{
	if (a->finding.there && prefix)
		id_format(prefix, a->finding.id, a->finding.subject);
}

/* Every pass begins before the first row that there can be. */
static void begin(struct auditor *a, unsigned at)
{
	a->at = at;
	a->pass = at < PASSES_N ? passes[at]->name : NULL;
	a->percent = -1;
	a->key = a->seq = INT64_MIN;
}

void auditor_init(struct auditor *a)
{
	*a = (struct auditor){0};
	strbuf_init(&a->list, LIST_BYTES_MAX);
	strbuf_init(&a->prefix, PREFIX_BYTES_MAX);
	begin(a, 0);
}

void auditor_release(struct auditor *a)
{
	strbuf_release(&a->list);
	strbuf_release(&a->prefix);
}

bool auditor_ask(struct auditor *a, struct unit *unit)
{
	if (a->at == PASSES_N || a->finding.there)
		return false;
	unit_init(unit, /* op= */ 0);
	passes[a->at]->ask(a, unit);
	return true;
}

void auditor_take(struct auditor *a, const struct unit_result *result)
{
	if (!passes[a->at]->take(a, result) && !a->finding.there)
		begin(a, a->at + 1);
}
