/* See json_write.h. */
#include "base/json_write.h"

#include "base/clock.h"
#include "base/id.h"
#include "base/json_string.h"

void json_more(struct strbuf *text, const char *member)
{
	char last = text->n ? text->p[text->n - 1] : '{';

	strbuf_add_str(text, last == '{' || last == ',' ? "\"" : ",\"");
	strbuf_add_str(text, member);
	strbuf_add_str(text, "\":");
}

void json_more_json(struct strbuf *text, const char *member, struct slice json)
{
	json_more(text, member);
	strbuf_add_slice(text, json.p ? json : slice_str("null"));
}

void json_more_text(struct strbuf *text, const char *member, struct slice value)
{
	json_more(text, member);
	if (value.p)
		json_quote(value, text);
	else
		strbuf_add_str(text, "null");
}

/* Of letters and digits alone. */
static void add_quoted(struct strbuf *text, const char *plain)
{
	strbuf_add_char(text, '"');
	strbuf_add_str(text, plain);
	strbuf_add_char(text, '"');
}

void json_more_time(struct strbuf *text, const char *member, int64_t ms)
{
	char time[WALL_TIME_TEXT_BYTES];

	json_more(text, member);
	if (!ms) {
		strbuf_add_str(text, "null");
		return;
	}
	wall_time_format((struct wall_time){ms}, time);
	add_quoted(text, time);
}

void json_more_int(struct strbuf *text, const char *member, int64_t number)
{
	json_more(text, member);
	strbuf_add_int(text, number);
}

void json_more_bool(struct strbuf *text, const char *member, bool value)
{
	json_more(text, member);
	strbuf_add_str(text, value ? "true" : "false");
}

void json_more_id(struct strbuf *text, const char *member, const char *prefix, int64_t subject)
{
	char id[ID_TEXT_BYTES];

	id_format(prefix, subject, id);
	json_more(text, member);
	add_quoted(text, id);
}

void json_more_word(struct strbuf *text, const char *member, const char *word)
{
	json_more_text(text, member, word ? slice_str(word) : slice_of(NULL, 0));
}

void json_next_text(struct strbuf *text, struct slice value)
{
	strbuf_add_char(text, ',');
	if (value.p)
		json_quote(value, text);
	else
		strbuf_add_str(text, "null");
}
