/* See latch.h. */
#include "base/latch.h"

void latch_init(struct latch *latch)
{
	monitor_init(&latch->monitor);
	latch->is_open = false;
	latch->code = HX_OK;
}

void latch_open(struct latch *latch)
{
	monitor_raise(&latch->monitor, &latch->is_open);
}

void latch_open_with(struct latch *latch, enum hx_code code)
{
	latch->code = code; /* seen by whoever sees that it is open */
	latch_open(latch);
}

enum hx_code latch_wait(struct latch *latch)
{
	monitor_lock(&latch->monitor);
	while (!latch->is_open)
		monitor_wait(&latch->monitor);
	monitor_unlock(&latch->monitor);
	return latch->code;
}

void latch_release(struct latch *latch)
{
	monitor_release(&latch->monitor);
}
