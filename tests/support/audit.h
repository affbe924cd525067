/*
 * Is a subject whole? For the chaos tests, which look at a store after processes died or fought over it, also at subjects
 * without a noun. The chain is followed by what `hapax audit` follows it with (flow/audit_chain.h).
 *
 * The subject's row and its history are read in one transaction, and must tell the same story:
 *  - the history begins with the creation, has no gaps, and each row starts where the one before ended;
 *  - the version rises by one with each row, the fence by one with each claim and never otherwise;
 *  - every hash is sha256(the hash before it || the text of the row);
 *  - the subject's row is what the last history row says, head included, and is owned exactly while claimed.
 * For subjects that are driven through several statuses under one claim (runs), a row may stand for several transitions,
 * and the fence rises by one with each holder; at the end nobody holds it.
 * So a transition is there with all of its parts, or none of them is.
 */
#ifndef HX_TESTS_SUPPORT_AUDIT_H
#define HX_TESTS_SUPPORT_AUDIT_H

#include "db/driver.h"
#include "flow/subject.h"

#define AUDIT_BYTES_MAX (512u << 20)

/* Called for each row of the history, in order; the texts live only during the call. May be NULL. */
typedef void audit_see(void *context, const struct history_row *row);

struct audit {
	struct db *db;
	const char *claimed; /* the one status that is a claim; NULL: there is none */
	bool driven;         /* it is a run */
	audit_see *see;
	void *context;
	struct arena arena; /* arena_init(…, AUDIT_BYTES_MAX) by the caller, reset by each call */
};

/* The number of history rows, or -1 with words in err->detail. */
int64_t audit_subject(struct audit *audit, int64_t subject, struct hx_error *err);

#endif
