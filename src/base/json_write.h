/*
 * Members of a JSON object, one by one. Whoever writes opens the object before, and closes it after; a comma is added where the text
 * does not end with { or a comma.
 */
#pragma once

#include "base/strbuf.h"

/* The name and the colon: the value is the caller's. */
void json_more(struct strbuf *text, const char *member);
/* .p NULL, NULL, 0 ms: null. */
void json_more_json(struct strbuf *text, const char *member, struct slice json);
void json_more_text(struct strbuf *text, const char *member, struct slice value);
void json_more_word(struct strbuf *text, const char *member, const char *word);
void json_more_time(struct strbuf *text, const char *member, int64_t ms);
void json_more_int(struct strbuf *text, const char *member, int64_t number);
void json_more_bool(struct strbuf *text, const char *member, bool value);
void json_more_id(struct strbuf *text, const char *member, const char *prefix, int64_t subject);

/* Of an array: a comma, and one more element. .p NULL: null. */
void json_next_text(struct strbuf *text, struct slice value);
