/* The only place where a lane's thread and the others meet. */
#include "task/inbox.h"

#include <stdlib.h>

#include "base/thread.h"

#define WAIT_NS_MAX ((int64_t)86400 * 1000000000)

void inbox_init(struct inbox *inbox, size_t seats_max, struct clock *clock, int64_t budget_ms)
{
	*inbox = (struct inbox){.seats_max = seats_max, .clock = clock, .budget_ms = budget_ms};
	inbox->last_seat = &inbox->first_seat;
	inbox->last_mail = &inbox->first_mail;
	pthread_mutex_init(&inbox->mutex, NULL);
	condition_init(&inbox->arrived);
}

void inbox_release(struct inbox *inbox)
{
	while (inbox->first_mail) {
		struct mail *mail = inbox->first_mail;

		inbox->first_mail = mail->next;
		free(mail);
	}
	pthread_cond_destroy(&inbox->arrived);
	pthread_mutex_destroy(&inbox->mutex);
}

/* Unlocks; the signal is left out while the lane is busy, since it looks again before it sleeps. */
static void unlock_and_tell(struct inbox *inbox)
{
	bool tell = inbox->waiting;

	inbox->waiting = false;
	pthread_mutex_unlock(&inbox->mutex);
	if (tell)
		pthread_cond_signal(&inbox->arrived);
}

/* Counted from here, not from when the lane comes to it. */
static void set_deadline(const struct inbox *inbox, struct seat *seat, bool own)
{
	seat->bounded = inbox->budget_ms && (!own || seat->deadline.ns);
	seat->by = (struct mono_time){INT64_MAX};
	if (seat->bounded)
		seat->by = seat->deadline.ns ? seat->deadline : mono_add_ms(clock_mono(inbox->clock), inbox->budget_ms);
}

static void append_seat(struct inbox *inbox, struct seat *seat, bool own)
{
	set_deadline(inbox, seat, own);
	inbox->seats_n += !own;
	inbox->arrived_n++;
	seat->own = own;
	seat->next = NULL;
	*inbox->last_seat = seat;
	inbox->last_seat = &seat->next;
}

enum hx_code inbox_put_seat(struct inbox *inbox, struct seat *seat)
{
	enum hx_code code = HX_OK;

	pthread_mutex_lock(&inbox->mutex);
	if (inbox->stopping)
		code = HX_STOPPING;
	else if (inbox->seats_n >= inbox->seats_max)
		code = HX_BUSY;
	else
		append_seat(inbox, seat, /* own= */ false);
	unlock_and_tell(inbox);
	return code;
}

enum hx_code inbox_put_own(struct inbox *inbox, struct seat *seat)
{
	enum hx_code code = HX_OK;

	pthread_mutex_lock(&inbox->mutex);
	if (inbox->stopping)
		code = HX_STOPPING;
	else
		append_seat(inbox, seat, /* own= */ true);
	unlock_and_tell(inbox);
	return code;
}

void inbox_put_beat(struct inbox *inbox, struct seat *seat)
{
	pthread_mutex_lock(&inbox->mutex);
	append_seat(inbox, seat, /* own= */ true);
	unlock_and_tell(inbox);
}

void inbox_put_mail(struct inbox *inbox, struct mail *mail)
{
	mail->next = NULL;
	pthread_mutex_lock(&inbox->mutex);
	*inbox->last_mail = mail;
	inbox->last_mail = &mail->next;
	inbox->arrived_n++;
	unlock_and_tell(inbox);
}

void inbox_put_wakes(struct inbox *inbox, const int64_t topics[], size_t n)
{
	pthread_mutex_lock(&inbox->mutex);
	if (n > WAKES_MAX - inbox->wakes_n) {
		inbox->wake_everybody = true;
	} else {
		memcpy(inbox->wakes + inbox->wakes_n, topics, n * sizeof *topics);
		inbox->wakes_n += n;
	}
	unlock_and_tell(inbox);
}

bool inbox_put_offer(struct inbox *inbox, const struct passed_offer *offer)
{
	bool fits;

	pthread_mutex_lock(&inbox->mutex);
	fits = inbox->offers_n < OFFERS_MAX;
	if (fits)
		inbox->offers[inbox->offers_n++] = *offer;
	else
		inbox->wake_everybody = true;
	unlock_and_tell(inbox);
	return fits;
}

void inbox_put_wake_everybody(struct inbox *inbox)
{
	pthread_mutex_lock(&inbox->mutex);
	inbox->wake_everybody = true;
	unlock_and_tell(inbox);
}

void inbox_nudge(struct inbox *inbox)
{
	pthread_mutex_lock(&inbox->mutex);
	inbox->nudged = true;
	unlock_and_tell(inbox);
}

void inbox_stop(struct inbox *inbox)
{
	pthread_mutex_lock(&inbox->mutex);
	inbox->stopping = true;
	inbox->nudged = true;
	unlock_and_tell(inbox);
}

static bool has_something(const struct inbox *inbox)
{
	return inbox->first_seat || inbox->first_mail || inbox->wakes_n || inbox->offers_n || inbox->wake_everybody ||
	       inbox->nudged;
}

static void wait_until_something(struct inbox *inbox, int64_t wait_ns)
{
	struct mono_time until = clock_mono(clock_system());
	bool in_time = true;

	until.ns += wait_ns < WAIT_NS_MAX ? wait_ns : WAIT_NS_MAX;
	while (in_time && !has_something(inbox)) {
		inbox->waiting = true;
		in_time = condition_wait_until(&inbox->arrived, &inbox->mutex, until);
	}
	inbox->waiting = false;
}

struct seat *inbox_take_late(struct inbox *inbox, struct mono_time now)
{
	struct seat *late = NULL, **late_end = &late, **at, *seat;

	LOCKED(&inbox->mutex);
	at = &inbox->first_seat;
	while ((seat = *at)) {
		if (now.ns < seat->by.ns) {
			at = &seat->next;
			continue;
		}
		*at = seat->next;
		*late_end = seat;
		late_end = &seat->next;
		inbox->arrived_n--;
	}
	inbox->last_seat = at;
	*late_end = NULL;
	return late;
}

bool inbox_is_stopping(struct inbox *inbox)
{
	LOCKED(&inbox->mutex);
	return inbox->stopping;
}

void inbox_leave(struct inbox *inbox)
{
	atomic_fetch_sub(&inbox->seats_n, 1);
}

bool inbox_take(struct inbox *inbox, int64_t wait_ns, const struct lane_stats *stats, struct mailbag *ret_bag)
{
	bool something;

	LOCKED(&inbox->mutex);
	inbox->stats = *stats;
	if (wait_ns > 0 && !has_something(inbox))
		wait_until_something(inbox, wait_ns);
	something = has_something(inbox);
	ret_bag->seats = inbox->first_seat;
	ret_bag->mail = inbox->first_mail;
	ret_bag->wakes_n = inbox->wakes_n;
	ret_bag->wake_everybody = inbox->wake_everybody;
	ret_bag->stopping = inbox->stopping;
	memcpy(ret_bag->wakes, inbox->wakes, inbox->wakes_n * sizeof *inbox->wakes);
	ret_bag->offers_n = inbox->offers_n;
	memcpy(ret_bag->offers, inbox->offers, inbox->offers_n * sizeof *inbox->offers);
	inbox->first_seat = NULL;
	inbox->last_seat = &inbox->first_seat;
	inbox->first_mail = NULL;
	inbox->last_mail = &inbox->first_mail;
	inbox->arrived_n = 0;
	inbox->wakes_n = 0;
	inbox->offers_n = 0;
	inbox->wake_everybody = false;
	inbox->nudged = false;
	return something;
}
