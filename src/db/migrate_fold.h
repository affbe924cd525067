/*
 * A script of migrations in which every table that it makes is made whole: what a later one adds to it (`ALTER TABLE t ADD COLUMN
 * …;`, on a line of its own) stands in its CREATE TABLE. The schema is the same to the letter. With each ALTER SQLite reads
 * all of its schema again: of a new store they were four fifths of its migrations' time.
 *
 * Statements in between see the column earlier than they were written for, so they name the columns of what they fill. A table that
 * is dropped or renamed in between keeps its ALTER.
 */
#pragma once

#include "base/strbuf.h"

void migrate_fold(struct strbuf *script);
