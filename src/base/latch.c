/* See latch.h. */
#include "base/latch.h"

void latch_init(struct latch *latch)
{
	monitor_init(&latch->monitor);
	latch->is_open = false;
}

void latch_open(struct latch *latch)
{
	monitor_raise(&latch->monitor, &latch->is_open);
}

void latch_wait(struct latch *latch)
{
	monitor_lock(&latch->monitor);
	while (!latch->is_open)
		monitor_wait(&latch->monitor);
	monitor_unlock(&latch->monitor);
}

void latch_release(struct latch *latch)
{
	monitor_release(&latch->monitor);
}
