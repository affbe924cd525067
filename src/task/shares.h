/*
 * Who is served next aside (aside.h): connections are places, of two kinds, and they are shared out between workspaces.
 *
 * Each workspace has a line of its own for each kind. A place that is free goes to the workspace that holds the fewest of its
 * kind, of those that hold as many in turn; and none takes another place unless more of them are free than it holds. So one of
 * them alone, however much it has waiting, has 2 of 4 places, and two together leave one for a third. Nothing is known of
 * how long a piece of work will take, and nothing needs to be.
 *
 * A share lives for as long as it has errands waiting or under way. Units of ours, which belong to no workspace, have one, too, and
 * it is that of whoever there is no memory for.
 */
#pragma once

#include "task/aside.h"

enum place { PLACE_TRY, PLACE_LONG, PLACES };

struct errand_line {
	struct errand *first, **last;
};

struct share {
	struct share *next;
	uint64_t tenant;
	struct errand_line lines[PLACES];
	size_t held[PLACES];
	size_t alone; /* of those held: for what is tried alone. Kept by whoever takes it */
};

struct shares {
	struct share *first, **last; /* in turn */
	struct share ours;           /* always in the list */
	size_t free[PLACES];         /* places */
	size_t waiting[PLACES];      /* errands */
};

void shares_init(struct shares *shares, size_t tries, size_t longs);
void shares_add(struct shares *shares, struct errand *errand);
/* Whose turn it is to take a place of this kind. NULL: nobody may, or nobody waits. */
struct share *shares_next(const struct shares *shares, enum place place);
/* It takes a place, and is the last in turn. It has errands in its line, and takes out some of them, of shares_cut(). */
void shares_begin(struct shares *shares, struct share *share, enum place place);
/* Gives it back. The share is gone if it has nothing else. */
void shares_end(struct shares *shares, struct share *share, enum place place);
/* Takes out the errand that *at points to, in this line of this share. */
struct errand *shares_cut(struct shares *shares, struct share *share, enum place place, struct errand **at);
/* Takes out one that has waited for a place of this kind since before `since`. NULL: there is none. */
struct errand *shares_cut_older(struct shares *shares, enum place place, struct mono_time since);
