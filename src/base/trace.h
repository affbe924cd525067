/*
 * W3C trace context: which larger piece of work a call is part of, as the two header fields tell it.
 *
 *   traceparent: 00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01     tracestate: congo=t61rcWkgMzE
 *                version, trace id, parent id, flags; hex in lower case      up to each tracer, opaque to us
 *
 * Between the request and the call a trace is one text, so that it fits one column and one slice: the traceparent, and, after
 * a space, the tracestate if there is one. Empty: none. What is not well-formed says nothing, and is none.
 *
 * A call is a span of its own: the trace id stays, the parent id is a new one. It is made of the call's key, fence and
 * attempt, so it needs no random numbers, and whoever knows the history can tell which call a span was.
 */
#pragma once

#include <stdint.h>

#include "base/arena.h"
#include "base/json.h"
#include "base/slice.h"
#include "base/strbuf.h"

#define TRACE_PARENT_BYTES 55
#define TRACE_STATE_BYTES_MAX 512 /* what everybody has to pass on; a longer one is dropped */

/*
 * From the values of the two fields, in the arena. Empty when the parent is not well-formed: upper case, an id of zeros,
 * version ff, or of version 00 with more after it. Of a higher version the part that we know is taken, as version 00.
 */
struct slice trace_of(struct slice parent, struct slice state, struct arena *arena);
/* Its two halves, of one that trace_of() made; an empty one has empty halves. */
struct slice trace_parent(struct slice trace);
struct slice trace_state(struct slice trace);
/* A new trace, with a random id: for what nobody has traced so far. Sampled, or nobody would see it. */
struct slice trace_new(char ret_text[TRACE_PARENT_BYTES]);
/* One that follows from the key, for calls whose cause kept no trace: all tries are of one. */
struct slice trace_of_key(struct slice key, char ret_text[TRACE_PARENT_BYTES]);
/* In place: the parent is this call from now on. */
void trace_continue(char *trace, size_t n, struct slice key, int64_t fence, int64_t attempt);

/* "traceparent":"…","tracestate":"…", with the comma after; nothing for an empty one. */
void trace_add_members(struct slice trace, struct strbuf *text);
/* The same of an object that has them as members, in the arena. */
struct slice trace_of_members(struct json object, struct arena *arena);
