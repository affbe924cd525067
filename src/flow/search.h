/*
 * Searching: which subjects of a kind match a condition (model/where.h), in the order that is wanted.
 *
 * No SQL is made of a condition. One of a few fixed statements walks a range of an index, a slice at a time, and brings what the
 * condition looks at; where_holds() decides for each. Which range, is the plan:
 *
 *   begin ─▶ probe: how many are there of each range that the condition names (`customer == "c-1"`, `total >= 100`), up to a bound;
 *            is there any of a name that no definition has? ─▶ choose ─▶ slice ─▶ slice … ─▶ end
 *
 *   by                  walks                                        in the order of   chosen for
 *   SEARCH_ONE          the primary key                              there is one      id == …
 *   SEARCH_KEY          the index of keys, or of names of entities   there is one      key == …, id == … of an entity
 *   SEARCH_ATTRIBUTE    hx_attribute_found, one name, from to        value, then id    order by that attribute; or one value of it
 *   SEARCH_GATHER       the same, all of it, at most GATHER_MAX      what is wanted,   few have it
 *                                                                    sorted
 *   SEARCH_WORKFLOW     the index of lists by workflow               id                workflow == …
 *   SEARCH_PARKED       that of parked jobs                          id                status == "PARKED" of jobs
 *   SEARCH_ALL          the index of lists                           id                nothing else
 *
 * The order of ids is that in which things were created. Where a range is walked in its order, a page begins where the last one
 * ended: the cursor is (value, id), whatever was chosen, so that another choice for the next page (there are more by now) goes on
 * from there. In the order of an attribute only those are found that have it.
 */
#pragma once

#include "db/unit.h"
#include "model/where.h"

#define SEARCH_SLICE 500
#define SEARCH_SLICE_SQL "500"
#define SEARCH_GATHER_MAX 1000 /* so few are sorted; counted up to one more */
#define SEARCH_GATHER_SQL "1001"
#define SEARCH_VALUE_BYTES (SORTABLE_BYTES_MAX + 8)

enum search_by { SEARCH_ONE, SEARCH_KEY, SEARCH_ATTRIBUTE, SEARCH_GATHER, SEARCH_WORKFLOW, SEARCH_PARKED, SEARCH_ALL };

/* Of the values of one attribute: what is above (from, from_id) and below (to, to_id). */
struct search_range {
	struct slice name;
	char from[SEARCH_VALUE_BYTES], to[SEARCH_VALUE_BYTES];
	size_t from_n, to_n;
	int64_t from_id, to_id;
	bool one;      /* of one value alone: by id */
	int64_t count; /* up to SEARCH_GATHER_MAX + 1; -1: nobody has counted */
};

/* Where the last page has ended. */
struct search_place {
	int64_t id; /* 0: from the beginning */
	char value[SEARCH_VALUE_BYTES];
	size_t value_n;
};

struct search {
	/* What is wanted. Texts outlive it. */
	enum where_kind of;
	struct slice workspace;
	int64_t kind;                  /* subject_kind() */
	const struct where *where;     /* NULL: all of them */
	struct slice status, workflow; /* besides; empty: any. Entities have their workflow */
	int64_t parent;                /* besides; 0: any */
	struct slice order;            /* an attribute; empty: the id */
	bool up;                       /* else the last first */
	struct search_place after;
	const char *const *known; /* names of attributes that definitions have, ending with NULL */
	/* The plan. */
	enum search_by by;
	struct search_range range; /* of SEARCH_ATTRIBUTE and SEARCH_GATHER */
	int64_t one;
	struct slice key;
	bool parked; /* of jobs: none but these can match */
	/* private */
	struct search_range ranges[WHERE_CONJUNCTS_MAX];
	size_t ranges_n;
	const struct where_test *unknown[WHERE_CONJUNCTS_MAX]; /* names that no definition has */
	size_t unknown_n;
};

/* Reads the condition. True: search_build_probe() comes first, else it is planned already. */
bool search_begin(struct search *search);
void search_build_probe(const struct search *search, struct unit *unit);
/* Chooses. The name that is nowhere, or NULL. */
const struct where_test *search_take_probe(struct search *search, const struct unit_result *result);

/* The next slice after search->after. */
void search_build(const struct search *search, struct unit *unit);
struct search_slice {
	const struct db_rows *rows;
	bool last; /* there is nothing after it */
};
/* False: there were more than are sorted, and another plan is made: build again. */
bool search_take(struct search *search, const struct unit_result *result, struct search_slice *ret);
/* Row i of the slice: where the next page begins after it, and does it match? */
bool search_row(struct search *search, const struct db_rows *rows, size_t i);
/* What the row says, as where_holds() wants it; texts are the row's. */
struct where_subject search_subject(const struct db_rows *rows, size_t i);

/* A row of the subject with this id, for a condition that is asked again; or none. */
void search_read_one(struct unit *unit, enum where_kind kind, struct slice workspace, int64_t id);
