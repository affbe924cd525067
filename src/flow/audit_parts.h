/* What the passes of the audit share. Nobody else includes this. */
#pragma once

#include "db/columns.h"
#include "flow/audit.h"

struct audit_pass {
	const char *name;
	void (*ask)(struct auditor *a, struct unit *unit);
	bool (*take)(struct auditor *a, const struct unit_result *result); /* true: there is more of it */
};
extern const struct audit_pass audit_histories, audit_nouns, audit_steps, audit_ledgers, audit_batches;

/* "batch_…" and the like into the finding, if there is one, of a subject with this prefix. */
void audit_name(struct auditor *a, const char *prefix);
