/*
 * One history, row by row: what two rows that follow each other, and the last row and its subject, must agree on. Pure; used by
 * `hapax audit` (audit.h) and by the tests.
 *
 *  H1  The first row is the creation: seq 1, from no status, version 1, fence 0. Then seq has no gaps.
 *  H2  hash is what links it to the row before (db/link.h).
 *  H3  A row starts in the status in which the one before it ended. (Not of an entity in a table of the user's: others may
 *      have moved that.)
 *  H4  The version rises, by one with each row; of a run, by the number of transitions that the row stands for. (Of an
 *      entity in a table of the user's it is what that table says.)
 *  H5  The fence never falls, and rises by one at most.
 *  H6  The status is one that such a subject can have, and one that leads there (ways.h).
 *  H7  The subject is what its last row says: seq, status, version, fence, op, time, head.
 */
#pragma once

#include "base/hash.h"
#include "flow/subject.h"
#include "flow/ways.h"

#define AUDIT_NAME_BYTES 400
#define AUDIT_WORDS_BYTES 160

/* The first promise that was found broken. */
struct audit_finding {
	bool there;
	int64_t id;                     /* of the subject */
	char subject[AUDIT_NAME_BYTES]; /* as users name it; empty: only its id is known */
	const char *row; /* what `seq` counts: "history row", "ledger entry", "item", "step"; NULL: none */
	int64_t seq;
	const char *what; /* a few stable words: "version", "hash" */
	char expected[AUDIT_WORDS_BYTES], found[AUDIT_WORDS_BYTES];
};

/* Where somebody is looking. */
struct audit_place {
	int64_t id;
	const char *row;
	int64_t seq;
};

/* What was tampered with may be any number: it must not overflow. */
static inline int64_t audit_sum(int64_t a, int64_t b)
{
	return (int64_t)((uint64_t)a + (uint64_t)b);
}

/* They note the difference, unless there is one already, and return false; alike: true. */
bool audit_equal(struct audit_finding *finding, const struct audit_place *place, const char *what, int64_t expected,
		 int64_t found);
bool audit_holds(struct audit_finding *finding, const struct audit_place *place, bool holds, const char *what,
		 const char *expected, struct slice found);

/* The same of a hash; found.n 0: there is none. */
bool audit_same_hash(struct audit_finding *finding, const struct audit_place *place, const char *what,
		     const uint8_t expected[SHA256_BYTES], struct slice found);

struct audit_noun {
	const char *name;
	const char *prefix;      /* of its id; NULL: it is named otherwise */
	bool follows_user;       /* status and version are those of a table of the user's */
	bool strides;            /* a row may stand for several transitions */
	const struct ways *ways; /* NULL: any status may follow any */
};
extern const struct audit_noun audit_entity, audit_table_entity, audit_job, audit_run, audit_batch, audit_account,
	audit_schedule;

bool audit_is_terminal(const struct audit_noun *noun, struct slice status);

/* How far a history was followed. Flat: it can be left and gone on with. */
struct audit_chain {
	struct history_row last; /* its texts are in `to` and nowhere; seq 0: no row yet */
	char to[256];
	size_t to_n; /* also of one that is longer than the buffer */
	uint8_t head[SHA256_BYTES];
};

/* The subject's row. */
struct audit_subject {
	int64_t id, kind, version, op, fence, at, seq;
	struct slice status, head;
	bool owned, has_until;
};

void audit_chain_start(struct audit_chain *chain, int64_t subject);
/* The next row, with its hash. False: it breaks a promise, which is noted. H1 to H6. */
bool audit_chain_add(struct audit_chain *chain, const struct audit_noun *noun, const struct history_row *row,
		     struct slice hash, struct audit_finding *finding);
/* After the last row. H7. */
bool audit_chain_end(const struct audit_chain *chain, const struct audit_subject *subject,
		     struct audit_finding *finding);
