/*
 * The services of a world, as one real server on loopback: for tests that are replayed on a real engine (replay.h). POST /ACTION is a
 * call; what comes of it is what the example says of that action, call by call, and the ledger has what has happened, by key.
 *
 * Calls come in a thread of the server's, all else is asked by one other thread.
 */
#pragma once

#include "base/strbuf.h"
#include "trial/example.h"

struct mock;

struct mock_sight {
	unsigned calls; /* that have come */
	unsigned held;  /* of the action that is held: they wait for an answer */
	bool paused;    /* a call came whose caller is to stand still past its lease; it waits, too */
	bool crashed;   /* or is to be killed */
};

enum hx_code mock_new(const struct example *example, const struct example_mock *services, size_t n,
		      struct mock **ret_mock, struct hx_error *err) HX_MUST_CHECK;
/* Takes NULL. Whoever still waits is cut off. */
void mock_free(struct mock *mock);
const char *mock_url(const struct mock *mock);

struct mock_sight mock_look(struct mock *mock);
/* Calls of this action wait from now on; NULL: of none. Others that have waited are answered. */
void mock_hold(struct mock *mock, const char *action);
/* The calls of who has stood still, or was killed, have no answer. */
void mock_cut(struct mock *mock);
/* What is late happens: the first of this action, or with NULL all. False: nothing is. */
bool mock_land(struct mock *mock, const char *action);
/* {"ACTION": how often} of all; of what is as good twice as once, whether. */
void mock_ledger(struct mock *mock, struct strbuf *out);
