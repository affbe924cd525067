/*
 * The keyring: every live API key of the store, in memory, never older than KEYRING_AGE_MAX_MS.
 *
 *   ask ─┬ fits what is known, and that is fresh ──────────────────▶ answered at once: no store, one hash, one search
 *        └ all else ─▶ waits for a reading that begins from now on ─▶ answered in the keyring's thread
 *
 *   the thread:  RESTING ── somebody waits, or what is known is past KEYRING_RENEW_MS and was asked for ──▶ READING
 *                   ▲  └─ at least GAP_MS since the last one                                                   │
 *                   └────── the version is the one we know: nothing else is read; another: all live keys ──────┘
 *
 * Invariants
 *   1. Nobody is admitted by what was read more than KEYRING_AGE_MAX_MS ago, counted from before the reading began, by this
 *      machine's monotonic clock. So what was revoked, or expired, KEYRING_AGE_MAX_MS ago is refused on every node, also where the
 *      store cannot be reached: then nobody is admitted (HX_STORE_UNAVAILABLE). But for questions that say otherwise: numbers
 *      are wanted most when the store is gone.
 *   2. Nobody is refused by an old reading: a key that was made a moment ago is found. Whatever is wrong about a key (no such
 *      id, another secret, revoked, expired), it takes one hash, one comparison and one reading to say so; and whoever tries many
 *      shares readings with all others, GAP_MS apart.
 *   3. Without a key, whoever asks is let in while the store has never had one (`open`), and never again afterwards.
 *   4. An idle server reads nothing.
 *
 * It has a connection of its own, so that no list that takes its time stands in front of it. A store in memory can have no keys:
 * no other process reaches it, and so it has no thread.
 */
#pragma once

#include "base/arena.h"
#include "base/clock.h"
#include "base/log.h"
#include "engine/session.h"
#include "flow/api_key.h"

#define KEYRING_RENEW_MS 1000
#define KEYRING_AGE_MAX_MS 2000
#define KEYRING_WAITERS_MAX 20000

struct keyring;

struct keyring_options {
	const char *url; /* of a store whose schema is in place; outlives the keyring */
	struct clock *clock;
	struct log *log;
};

/* Who is this? The caller's memory, which stays where it is until it is answered. */
struct keyring_question {
	struct slice key; /* .n 0: none was given */
	bool is_session; /* `key` is the text of a session (session.h); while there are no keys yet it counts as none */
	bool last_known_will_do; /* if the store cannot be read, what was read last is believed, however old */
	bool store_lost;         /* with the former: believed at once, since a silent store would be waited for */
	struct arena *arena;     /* for the texts of the answer; the caller leaves it alone meanwhile */
	/* In the keyring's thread, for one that keyring_ask() has kept. */
	void (*answered)(struct keyring_question *question);
	/* The answer. HX_OK, HX_UNAUTHENTICATED, HX_STORE_UNAVAILABLE, HX_BUSY, HX_STOPPING, HX_NO_MEMORY. */
	enum hx_code code;
	bool open; /* HX_OK, and there are no keys yet */
	enum api_key_scope scope;
	struct slice workspace, requester;
	/* private */
	int64_t id;
	uint8_t digest[SHA256_BYTES];
	struct session session;
	bool well_formed;
	struct keyring_question *next;
};

/* Reads them for the first time. */
enum hx_code keyring_new(const struct keyring_options *options, struct keyring **ret,
			 struct hx_error *err) HX_MUST_CHECK;
/* True: it is answered. False: it will be, also when the keyring stops. From any thread. */
bool keyring_ask(struct keyring *keyring, struct keyring_question *question) HX_MUST_CHECK;
/* A session of this key, which has just been admitted. */
void keyring_session(struct keyring *keyring, struct slice key, char ret_text[SESSION_TEXT_CHARS + 1]);
/* Has the store ever had a key, as far as is known? */
bool keyring_has_keys(struct keyring *keyring);
/* Whoever waits is told HX_STOPPING. Takes NULL. */
void keyring_stop(struct keyring *keyring);
/* Stops it if need be. Takes NULL. */
void keyring_free(struct keyring *keyring);
