/*
 * API keys: who may ask, in whose name, for which workspace.
 *
 *   hx_0ahqhgtdhmw01_4rz…        its text, 69 characters, which whoever made it sees once and no store ever sees
 *      ╰─ id ──────╯ ╰ secret: 256 random bits in Crockford's base 32
 *
 *   create ─▶ LIVE ─┬─ revoke ──────────────▶ REVOKED, for ever
 *                   └─ expires_at is past ──▶ EXPIRED ─ revoke ─▶ REVOKED
 *
 *   the keyring  version 0: there has never been a key  ─ create ─▶  n ─ create, revoke ─▶ n + 1, never back
 *
 * Invariants
 *   1. The store has sha256(text) and nothing else of the secret. One plain hash is enough: slow and salted ones make guesses
 *      dear, and there is nothing to guess in 256 random bits.
 *   2. Whatever changes what a key may do raises the keyring's version in the same unit. So who knows the version that is in
 *      the store knows every key.
 *   3. Revoking is one guarded write; a key that is revoked stays revoked, and its row stays for the record. Its workspace,
 *      requester, scope and end never change: another key is made instead.
 *   4. Rows are never deleted, so a store that has once had a key never looks like one without: revoking the last one
 *      locks everybody out, and lets nobody in.
 *   5. At most API_KEYS_MAX are live. Servers keep them all in memory (engine/keyring.h).
 *
 * Times are the store's: a key expires at the same moment for all nodes.
 *
 * Who calls it: `hapax key` (cli/key.c) makes and revokes them in a transaction of its own, beside running servers, which
 * only read.
 */
#pragma once

#include "base/hash.h"
#include "base/id.h"
#include "db/unit.h"

#define API_KEY_PREFIX "hx"
#define API_KEY_ID_PREFIX "key" /* how people name one */
#define API_KEY_SECRET_BYTES 32
#define API_KEY_TEXT_CHARS (2 + 1 + 13 + 1 + 52)
#define API_KEYS_MAX 10000

/*
 * Each may do what those before it may, but for the last: a worker's key is for programs that do the work of others. It may claim jobs
 * and turns and say what became of them, and nothing else; not even look.
 */
enum api_key_scope { API_KEY_READ = 1, API_KEY_EXECUTE, API_KEY_ADMIN, API_KEY_WORKER };

struct api_key {
	int64_t id;
	struct slice workspace, requester, name; /* borrowed */
	enum api_key_scope scope;
	uint8_t digest[SHA256_BYTES];
	int64_t created_at_ms;
	int64_t expires_at_ms; /* 0: never */
	int64_t revoked_at_ms; /* 0: not yet */
};

/* "read" … */
const char *api_key_scope_name(enum api_key_scope scope);
bool api_key_scope_parse(struct slice text, enum api_key_scope *ret_scope);
/* May a key of this scope do what needs that one? */
bool api_key_may(enum api_key_scope scope, enum api_key_scope needed);

/* ---- the text ---- */

void api_key_format(int64_t id, const uint8_t secret[API_KEY_SECRET_BYTES], char ret_text[API_KEY_TEXT_CHARS + 1]);
/* False: this is no key, whatever is in the store. */
bool api_key_parse(struct slice text, int64_t *ret_id);
void api_key_digest(struct slice text, uint8_t ret_digest[SHA256_BYTES]);
/* Takes the same time wherever they differ. */
bool api_key_same(const uint8_t a[SHA256_BYTES], const uint8_t b[SHA256_BYTES]);

/* ---- units ---- */

/* With digest, for lifetime_ms (0: for ever). REFUSED: there are API_KEYS_MAX. Row of line API_KEY_MADE: created_at, expires_at. */
enum { API_KEY_MADE = 1 };
void api_key_create(struct unit *unit, const struct api_key *key, int64_t lifetime_ms);
/* LOST: there is none, or it is revoked already. */
void api_key_revoke(struct unit *unit, int64_t id);
/* Is there one? No row, or one of api_key_of_row(). */
void api_key_read(struct unit *unit, int64_t id);
/* After `after`, by id: all there ever were, or those that are live. */
void api_key_list(struct unit *unit, int64_t after, int64_t limit);
void api_key_list_live(struct unit *unit, int64_t after, int64_t limit);
void api_key_of_row(const struct db_rows *rows, size_t row, struct api_key *ret_key);

/* One row: the keyring's version, and the store's time. */
enum { KEYRING_VERSION, KEYRING_NOW };
void api_keyring_look(struct unit *unit);
