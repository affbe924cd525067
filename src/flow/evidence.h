/*
 * The evidence of a subject, in one file: what GET /api/v1/evidence/{subject} gives, and what `hapax audit --bundle` reads,
 * without the store that it is from.
 *
 *   {"format":"hapax-evidence-1","program":…,"at":…,"workspace":…,
 *   "subject":{"name":…,"noun":…,"id":…,"ownTable":…,"status":…,"version":…,"fence":…,"op":…,"time":…,"seq":…,"head":…,SEAL},
 *   "definition":null or {"name":…,"version":…,"textSha256":…,"text":null or a string,SEAL},
 *   "history":[{a row of the history,SEAL},…],
 *   "ledger":null or {"account":…,"balance":…,"charged":…,"refunded":…,"entries":[{an entry,SEAL},…]},
 *   SEAL
 *
 *   SEAL is "sha256":"…"}, the last member of its object: the hash of the object's bytes that stand before its comma.
 *
 *  E1  Every seal fits. So a byte that was changed is in a row that is named, or in the file as a whole.
 *  E2  The history keeps H1 to H7 (audit_chain.h), by the code of the audit: the links, the ways, the head.
 *  E3  The ledger of an account begins with its opening and ends with its balance. That of a batch has entries of this batch
 *      alone, whose charges and refunds are those of the batch.
 *  E4  A definition's text has the hash that is told of it.
 *
 * Neither seals nor links have a secret: whoever forges all of it consistently is found out by the head alone, where somebody has
 * kept that (or by the store). Pure.
 */
#pragma once

#include "base/strbuf.h"
#include "flow/audit_entry.h"

#define EVIDENCE_FORMAT "hapax-evidence-1"
#define EVIDENCE_BYTES_MAX (64u << 20)
#define EVIDENCE_ROWS_MAX 50000 /* of a history, and of a ledger */

/* Ends the object whose bracket is at `start`, with its seal. */
void evidence_seal(struct strbuf *text, size_t start);

struct evidence {
	struct audit_finding finding; /* .there: it is not what it says it is */
	char subject[AUDIT_NAME_BYTES];
	char head[2 * SHA256_BYTES + 1];
	int64_t at; /* ms: when it was taken */
	int64_t rows, entries;
};

/* HX_VALIDATION_ERROR, HX_TOO_LARGE: it is no evidence, or none that can be read. HX_OK: see the finding. */
enum hx_code evidence_check(struct slice text, struct evidence *ret, struct hx_error *err) HX_MUST_CHECK;
