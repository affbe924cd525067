/* See latch.h. */
#include "base/latch.h"

void latch_init(struct latch *latch)
{
	pthread_mutex_init(&latch->mutex, NULL);
	pthread_cond_init(&latch->opened, NULL);
	latch->is_open = false;
}

void latch_open(struct latch *latch)
{
	pthread_mutex_lock(&latch->mutex);
	latch->is_open = true;
	pthread_cond_signal(&latch->opened);
	pthread_mutex_unlock(&latch->mutex);
}

void latch_wait(struct latch *latch)
{
	pthread_mutex_lock(&latch->mutex);
	while (!latch->is_open)
		pthread_cond_wait(&latch->opened, &latch->mutex);
	pthread_mutex_unlock(&latch->mutex);
}

void latch_release(struct latch *latch)
{
	pthread_cond_destroy(&latch->opened);
	pthread_mutex_destroy(&latch->mutex);
}
