/*
 * The entry lock in the engine's own store, as a task: one unit to take it, one to release it.
 *
 *   START ─▶ TAKING ─┬─ won ────▶ HX_OK                       RELEASING ─ any ─▶ HX_OK
 *                    ├─ lost ───▶ HX_ENTRY_LOCKED                (with SWEEPING: rows whose owners died go too)
 *                    ├─ failed ─▶ HX_STORE_UNAVAILABLE
 *                    └─ unknown ▶ HX_OUTCOME_UNKNOWN: perhaps ours, so it has to be released
 *
 * A row that has expired counts as absent; whoever takes the lock next takes the row over.
 */
#pragma once

#include "base/hash.h"
#include "task/task.h"

#define ENTRY_NAME_BYTES (2 * SHA256_BYTES + 1)
#define ENTRY_TOKEN_BYTES 33

/* One lock by one taker. The name is the SHA-256 of the key, the token 128 random bits; both in hex. */
struct entry_lock {
	char name[ENTRY_NAME_BYTES];
	char token[ENTRY_TOKEN_BYTES];
	int64_t ttl_ms;
};

enum entry_write_kind { ENTRY_TAKE, ENTRY_RELEASE, ENTRY_RELEASE_AND_SWEEP };

struct entry_write {
	struct task task;
	struct entry_lock lock;
	/* private */
	enum entry_write_kind kind;
	int64_t op;
};

void entry_write_init(struct entry_write *write, const struct entry_lock *lock, enum entry_write_kind kind);
/* Which lane it goes to: writes of one name always meet in one. */
int64_t entry_write_subject(const struct entry_lock *lock);
