/* See audit.h. */
#include "flow/audit_parts.h"

#include "base/id.h"

#define LIST_BYTES_MAX (1u << 20)
#define PREFIX_BYTES_MAX 64

static const struct audit_pass *const passes[] = {&audit_histories, &audit_nouns,   &audit_steps,
						  &audit_slots,     &audit_ledgers, &audit_batches};
enum { PASSES_N = sizeof passes / sizeof *passes };

void audit_name(struct auditor *a, const char *prefix)
{
	if (a->finding.there && prefix)
		id_format(prefix, a->finding.id, a->finding.subject);
}

bool audit_belongs(struct auditor *a, const struct audit_streams *s, const int64_t *next)
{
	const struct db_value *row = s->at < s->rows->n ? db_cell(s->rows, s->at, 0) : NULL;
	struct audit_place place = {row ? row[0].i : 0, s->row, row ? row[1].i : 0};

	return audit_holds(&a->finding, &place, !row || (next && row[0].i >= *next), s->head, s->wanted,
			   slice_str("there is none"));
}

bool audit_walk(struct auditor *a, struct audit_streams *s,
		bool (*walk)(struct auditor *a, struct audit_streams *s, size_t i, bool *ret_whole))
{
	bool whole = true;

	for (size_t i = 0; i < s->heads->n && whole; i++) {
		int64_t id = db_cell(s->heads, i, 0)->i;

		if (!walk(a, s, i, &whole))
			return false;
		a->key = whole && id < INT64_MAX ? id + 1 : id;
		a->seq = whole || !a->chain.last.seq ? INT64_MIN : a->chain.last.seq;
	}
	return !whole || (audit_belongs(a, s, /* next= */ NULL) && s->heads->n == AUDIT_SUBJECTS_SLICE);
}

/* Every pass begins before the first row that there can be. */
static void audit_begin(struct auditor *a, unsigned at)
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
	audit_begin(a, 0);
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
		audit_begin(a, a->at + 1);
}
