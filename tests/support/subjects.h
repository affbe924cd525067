/* What tests do with subjects that the engine does not: make one that is nothing else, and read its history as a whole. */
#ifndef HX_TESTS_SUPPORT_SUBJECTS_H
#define HX_TESTS_SUPPORT_SUBJECTS_H

#include "flow/subject.h"

/* A new subject in its first status, version 1. LOST when the id exists already. */
void subject_create(struct unit *unit, const struct stamp *stamp, int64_t subject, int64_t kind, const char *status);
/* History by seq from `after` on. Row: seq, from, to, version, fence, op, node, at, hash. */
void subject_read_history(struct unit *unit, int64_t subject, int64_t after, int64_t limit);
/* Row: seq, head. */
void subject_read_head(struct unit *unit, int64_t subject);

#endif
