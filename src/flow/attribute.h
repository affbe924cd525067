/*
 * The rows by which something is found: one for each attribute that a subject has, made of the column `attributes` of its own row in the
 * unit that writes that column. So the two cannot differ: A1, and the audit of a store could ask it of every row.
 *
 *   hx_attribute   (workspace, kind, name, value, subject)   walked by flow/search.h
 */
#pragma once

#include "db/unit.h"

/* After the line that made the run, in its unit. */
void attributes_of_run(struct unit *unit, int64_t subject);
/* After the lines that made children from this number on. */
void attributes_of_children(struct unit *unit, int64_t parent, const char *step, int64_t from);
/* After the line that made children of a function, before the one that makes their subjects. */
void attributes_of_new_children(struct unit *unit, int64_t parent);
/* What the run has from now on, as it is kept; empty: none. */
void attributes_of_run_set(struct unit *unit, int64_t subject, struct slice attributes);
/* The same of an entity; kind: its machine's. */
void attributes_of_entity(struct unit *unit, int64_t subject, int64_t kind);
void attributes_of_entity_set(struct unit *unit, int64_t subject, int64_t kind, struct slice attributes);
/* And of a batch, whose attributes never change. */
void attributes_of_batch(struct unit *unit, int64_t subject);
/* Of whatever it is. */
void attributes_drop(struct unit *unit, int64_t subject);
