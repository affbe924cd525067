/* See call_key.h. */
#include "flow/call_key.h"

#include "base/id.h"
#include "base/json_string.h"

#define TEXT_BYTES_MAX (48u << 20)

struct slice call_key_to_ask(struct slice key, const char *what, int64_t ask, struct arena *arena)
{
	LOCAL_STRBUF(text, TEXT_BYTES_MAX);

	strbuf_addf(&text, "%.*s/%s/%s", SLICE_ARGS(key), what, id_text("ask", ask).text);
	return arena_keep(arena, &text);
}

struct slice call_body_about(struct slice body, struct slice key, struct arena *arena)
{
	LOCAL_STRBUF(text, TEXT_BYTES_MAX);

	if (body.n > 1) /* an arena that is full has given none */
		strbuf_add(&text, body.p, body.n - 1);
	strbuf_add_str(&text, ",\"key\":");
	json_quote(key, &text);
	strbuf_add_char(&text, '}');
	return arena_keep(arena, &text);
}
