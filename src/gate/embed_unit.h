/*
 * Writes of an embedding program, in one unit with the completion of its gate record.
 *
 *   line 0    the completion, as the VERDICT: a record that is another's by now, or completed, loses the unit.
 *             Again after an unknown outcome: so does one that has another token
 *   line 1…   the program's statements, MUST or ANY
 *
 * Connections know a prepared statement by its address, so every text that a program uses is kept for as long as its
 * gate is open; there are at most HX_GATE_SQL_TEXTS_MAX of them, since values are parameters.
 */
#pragma once

#include <hapax.h>
#include <pthread.h>

#include "base/arena.h"
#include "gate/record.h"
#include "task/lanes.h"

struct embed_texts {
	pthread_mutex_t mutex;
	struct arena arena;
	size_t n;
	struct embed_text *first;
};

void embed_texts_init(struct embed_texts *texts);
/* After the lanes have been closed. */
void embed_texts_release(struct embed_texts *texts);

/*
 * Builds the unit; `again`: its outcome was unknown, and it must not happen twice. What the writes and the ask point to is borrowed until it is answered. HX_VALIDATION_ERROR,
 * HX_TOO_LARGE, HX_NO_MEMORY.
 */
enum hx_code embed_unit_build(struct embed_texts *texts, const struct gate_ask *complete, bool again, size_t writes_n,
			      const struct hx_gate_write *writes, struct unit *ret_unit,
			      struct hx_error *err) HX_MUST_CHECK;

struct embed_result {
	enum unit_verdict verdict;
	int line;
	struct hx_error error; /* FAILED */
};
/* Runs it in the lane of the record, and waits. Not from a lane's thread. */
void embed_unit_run(const struct lanes *lanes, const struct gate_ask *complete, const struct unit *unit,
		    struct embed_result *ret_result);
