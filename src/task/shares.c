/* See shares.h. */
#include "task/shares.h"

#include <stdlib.h>

static void shares_append(struct shares *shares, struct share *share)
{
	share->next = NULL;
	*shares->last = share;
	shares->last = &share->next;
}

static void unlink_share(struct shares *shares, struct share *share)
{
	struct share **at = &shares->first;

	while (*at != share)
		at = &(*at)->next;
	*at = share->next;
	if (!share->next)
		shares->last = at;
}

static void share_init(struct share *share, uint64_t tenant)
{
	*share = (struct share){.tenant = tenant};
	for (int p = 0; p < PLACES; p++)
		share->lines[p].last = &share->lines[p].first;
}

void shares_init(struct shares *shares, size_t tries, size_t longs)
{
	*shares = (struct shares){.free = {[PLACE_TRY] = tries, [PLACE_LONG] = longs}};
	shares->last = &shares->first;
	share_init(&shares->ours, /* tenant= */ 0);
	shares_append(shares, &shares->ours);
}

static struct share *share_of(struct shares *shares, uint64_t tenant)
{
	struct share *share = shares->first;

	while (share && share->tenant != tenant)
		share = share->next;
	if (share)
		return share;
	share = malloc(sizeof *share);
	if (!share)
		return &shares->ours;
	share_init(share, tenant);
	shares_append(shares, share);
	return share;
}

void shares_add(struct shares *shares, struct errand *errand)
{
	enum place place = errand->go == ERRAND_LONG ? PLACE_LONG : PLACE_TRY;
	struct errand_line *line = &share_of(shares, errand->unit.tenant)->lines[place];

	errand->next = NULL;
	*line->last = errand;
	line->last = &errand->next;
	shares->waiting[place]++;
}

struct share *shares_next(const struct shares *shares, enum place place)
{
	struct share *best = NULL;

	for (struct share *share = shares->first; share && shares->waiting[place]; share = share->next)
		if (share->lines[place].first && share->held[place] < shares->free[place] &&
		    (!best || share->held[place] < best->held[place]))
			best = share;
	return best;
}

void shares_begin(struct shares *shares, struct share *share, enum place place)
{
	unlink_share(shares, share);
	shares_append(shares, share);
	share->held[place]++;
	shares->free[place]--;
}

static void drop_if_unused(struct shares *shares, struct share *share)
{
	bool used = share == &shares->ours;

	for (int p = 0; p < PLACES; p++)
		used |= share->lines[p].first || share->held[p];
	if (used)
		return;
	unlink_share(shares, share);
	free(share);
}

void shares_end(struct shares *shares, struct share *share, enum place place)
{
	share->held[place]--;
	shares->free[place]++;
	drop_if_unused(shares, share);
}

struct errand *shares_cut(struct shares *shares, struct share *share, enum place place, struct errand **at)
{
	struct errand *errand = *at;

	*at = errand->next;
	if (!errand->next)
		share->lines[place].last = at;
	shares->waiting[place]--;
	return errand;
}

struct errand *shares_cut_older(struct shares *shares, enum place place, struct mono_time since)
{
	struct share *share = shares->first;
	struct errand *errand;

	while (share && (!share->lines[place].first || share->lines[place].first->came.ns > since.ns))
		share = share->next;
	if (!share)
		return NULL;
	errand = shares_cut(shares, share, place, &share->lines[place].first);
	drop_if_unused(shares, share);
	return errand;
}
