/* See audit_entry.h. */
#include "flow/audit_entry.h"

#include <string.h>

#include "base/id.h"
#include "flow/account.h"

/* A number of digits alone, up to the slash or the end, without a zero in front. */
static bool take_number(struct slice *rest, int64_t *ret)
{
	size_t n = 0;

	for (*ret = 0; n < rest->n && n < 18 && rest->p[n] >= '0' && rest->p[n] <= '9'; n++)
		*ret = *ret * 10 + (rest->p[n] - '0');
	if (n == 0 || (n > 1 && rest->p[0] == '0') || (n < rest->n && rest->p[n] != '/'))
		return false;
	*rest = slice_of(rest->p + n, rest->n - n);
	return true;
}

static bool take_text(struct slice *rest, struct slice text)
{
	if (rest->n < text.n || memcmp(rest->p, text.p, text.n) != 0)
		return false;
	*rest = slice_of(rest->p + text.n, rest->n - text.n);
	return true;
}

/* The key says which batch, item and attempt; the reason stands in it, too. */
static bool parse_key(struct slice key, struct slice reason, struct audit_entry *entry)
{
	const size_t id_n = sizeof "batch_0123456789abc" - 1;
	struct slice rest = key;

	if (!take_text(&rest, slice_str("/")) || rest.n < id_n ||
	    !id_parse("batch", slice_of(rest.p, id_n), &entry->batch))
		return false;
	rest = slice_of(rest.p + id_n, rest.n - id_n);
	return take_text(&rest, slice_str("/")) && take_number(&rest, &entry->n) && take_text(&rest, slice_str("/")) &&
	       take_text(&rest, reason) && take_text(&rest, slice_str("/")) && take_number(&rest, &entry->attempt) &&
	       rest.n == 0;
}

static bool kind_of(struct slice reason, struct audit_entry *entry)
{
	if (slice_is(reason, "charge"))
		entry->kind = ENTRY_CHARGE;
	else if (slice_is(reason, "return"))
		entry->kind = ENTRY_RETURN;
	else if (slice_is(reason, "refund"))
		entry->kind = ENTRY_REFUND;
	else
		return false;
	return true;
}

bool audit_entry_read(const struct audit_entry_row *row, const struct audit_place *place, struct audit_entry *ret_entry,
		      struct audit_finding *finding)
{
	struct audit_entry entry = {.account = row->account, .seq = row->seq, .amount = row->amount, .of_batch = true};
	bool own = row->key.n && row->key.p[0] == ACCOUNT_OWN_KEY;

	*ret_entry = (struct audit_entry){.account = row->account};
	if (entry.seq == 1)
		return audit_holds(finding, place, slice_is(row->key, "/opening") && slice_is(row->reason, "opening"),
				   "key", "the opening", row->key);
	if (slice_is(row->reason, "credit"))
		return audit_holds(finding, place, !own, "key", "one that a user can have given", row->key) &&
		       audit_holds(finding, place, entry.amount > 0, "amount", "above 0", slice_str("another"));
	if (!audit_holds(finding, place, kind_of(row->reason, &entry), "reason", "credit, charge, return or refund",
			 row->reason) ||
	    !audit_holds(finding, place, parse_key(row->key, row->reason, &entry), "key",
			 "/batch_ID/ITEM/REASON/ATTEMPT, of its reason", row->key) ||
	    !audit_holds(finding, place, entry.amount != 0 && (entry.amount < 0) == (entry.kind == ENTRY_CHARGE),
			 "amount", "below 0 of a charge, above 0 of all else", slice_str("another")))
		return false;
	*ret_entry = entry;
	return true;
}

bool audit_entry_follows(const struct audit_entry_row *row, const struct audit_place *place, int64_t seq,
			 int64_t balance, struct audit_finding *finding)
{
	return audit_equal(finding, place, "seq", audit_sum(seq, 1), row->seq) &&
	       audit_equal(finding, place, "balance", audit_sum(balance, row->amount), row->balance) &&
	       audit_holds(finding, place, row->balance >= 0, "balance", "0 or more", slice_str("below 0"));
}
