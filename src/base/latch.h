/*
 * A latch: one thread waits until another says that it is done, once. It usually stands on the stack of the one that waits, who
 * may be gone as soon as it is open: whoever opens it does not touch it any more.
 */
#pragma once

#include "base/thread.h"

struct latch {
	struct monitor monitor;
	bool is_open;
	enum hx_code code;
};

void latch_init(struct latch *latch);
/* From any thread, one of them, once. */
void latch_open(struct latch *latch);
void latch_open_with(struct latch *latch, enum hx_code code);
/* Returns when it is open, at once if it is: the code that it was opened with. Nobody else may wait for it. */
enum hx_code latch_wait(struct latch *latch);
/* Not before it is open, or before anybody could open it. */
void latch_release(struct latch *latch);
