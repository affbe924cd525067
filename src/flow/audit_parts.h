/* What the passes of the audit share. Nobody else includes this. */
#pragma once

#include "db/columns.h"
#include "flow/audit.h"

struct audit_pass {
	const char *name;
	void (*ask)(struct auditor *a, struct unit *unit);
	bool (*take)(struct auditor *a, const struct unit_result *result); /* true: there is more of it */
};
extern const struct audit_pass audit_histories, audit_nouns, audit_steps, audit_slots, audit_ledgers, audit_batches;

/* Heads and the rows that belong to them, both by the head's id, as far as both were read. */
struct audit_streams {
	const struct db_rows *heads, *rows; /* the first cell of either is the id, the second of a row its seq */
	size_t at;                          /* the next row */
	bool cut;                           /* there may be more rows after the last */
	const char *row, *head, *wanted;    /* in words: "ledger entry", "account", "the account of this entry" */
};
/* The rows are not those of a head that is not there, in front of the one that is next (NULL: none is). */
bool audit_belongs(struct auditor *a, const struct audit_streams *s, const int64_t *next);
/*
 * Head after head, and notes where the next slice begins: at a head that is left in the middle (*ret_whole), or after it. Returns
 * whether there is more after this slice.
 */
bool audit_walk(struct auditor *a, struct audit_streams *s,
		bool (*walk)(struct auditor *a, struct audit_streams *s, size_t i, bool *ret_whole));

/* "batch_…" and the like into the finding, if there is one, of a subject with this prefix. */
void audit_name(struct auditor *a, const char *prefix);
