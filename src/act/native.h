/*
 * Native actions: C functions under a name, called on a small pool of threads.
 *
 * A function is on its own: it keeps its time (timeout_ms says how long it may take, nobody interrupts it), it may
 * look at `cancelled` in long work, and what it says is believed. It must not touch the lane.
 */
#pragma once

#include <stdatomic.h>

#include "base/strbuf.h"
#include "task/task.h"

#define NATIVES_MAX 64
#define NATIVE_NAME_MAX 64

/* Valid during the call of the function. */
struct native_call {
	struct slice input; /* JSON */
	struct slice key;   /* the same in every repetition of this effect */
	struct slice traceparent;
	int64_t attempt;
	int64_t fence; /* 0: no lease */
	int64_t timeout_ms;
	const atomic_bool *cancelled; /* nobody waits for the result any more */
};

/*
 * Any thread, several at once. Appends to *output: JSON (nothing is null) for ACT_OK and ACT_INVALID, words for
 * the rest. ACT_FAILED and ACT_FAILED_FOR_GOOD promise that nothing was done; who is not sure says ACT_UNKNOWN.
 */
typedef enum act_outcome (*native_function)(void *context, const struct native_call *call, struct strbuf *output);

struct native {
	char name[NATIVE_NAME_MAX + 1];
	native_function function;
	void *context;
};

/* Filled in before the port starts, constant from then on. */
struct natives {
	size_t n;
	struct native list[NATIVES_MAX];
};

/* HX_VALIDATION_ERROR: the name is empty, too long or taken; HX_TOO_LARGE: there are NATIVES_MAX already. */
enum hx_code natives_add(struct natives *natives, const char *name, native_function function, void *context,
			 struct hx_error *err) HX_MUST_CHECK;
/* NULL: none of that name. Takes NULL for both. */
const struct native *natives_find(const struct natives *natives, const char *name);

struct kind;
enum hx_code native_kind_new(const struct natives *natives, size_t slots, struct kind **ret_kind,
			     struct hx_error *err) HX_MUST_CHECK;
