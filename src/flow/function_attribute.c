/*
 * What a function tells of itself (entries of kind attribute), as what it is searched by: the attributes of its run, beside those that its
 * definition makes of its input. The last entry of a name holds. In the unit that takes the entries, so that a search finds what the
 * journal says. See attribute.h and model/attributes.h.
 *
 * A name that no condition could have, a value that cannot be kept (null takes the attribute away) and what is beyond the room stay in the
 * journal alone: what people look for something by must never stop it.
 */
#include "base/json_string.h"
#include "base/json_walk.h"
#include "base/sortable.h"
#include "flow/function_parts.h"

#define OBJECT_BYTES_MAX (FUNCTION_ATTRIBUTES_MAX * (6 * SORTABLE_BYTES_MAX + ATTRIBUTE_NAME_MAX + 8))

static bool tells(const struct function_entry *e)
{
	return e->kind == ENTRY_ATTRIBUTE && e->changed;
}

/* The last word on that name in this decision; NULL: none. */
static const struct function_entry *told_of(const struct function_work *w, struct slice name)
{
	for (size_t i = w->n; i-- > 0;)
		if (tells(w->entries[i]) && slice_eq(w->entries[i]->name, name))
			return w->entries[i];
	return NULL;
}

static void begin_member(struct strbuf *object, size_t *n)
{
	strbuf_add_str(object, (*n)++ ? "," : "");
}

/* Those that it had, and of which nothing new is told. The names are names of conditions, which have no escapes. */
static void keep_old(const struct function_work *w, struct strbuf *object, size_t *n)
{
	struct json_iter it;
	struct json name, value;

	if (!w->row.attributes.p)
		return;
	it = json_iter_of(json_trust(w->row.attributes));
	while (json_iter_member(&it, &name, &value)) {
		if (told_of(w, slice_of(name.raw.p + 1, name.raw.n - 2)))
			continue;
		begin_member(object, n);
		strbuf_add_slice(object, name.raw);
		strbuf_add_char(object, ':');
		strbuf_add_slice(object, value.raw);
	}
}

static void add_told(const struct function_entry *e, struct strbuf *object, size_t *n)
{
	struct json value;
	LOCAL_STRBUF(kept, SORTABLE_BYTES_MAX);

	if (*n == FUNCTION_ATTRIBUTES_MAX || !attribute_name_is_good(WHERE_RUN, e->name) ||
	    !json_find(json_trust(e->detail), slice_str("value"), &value) || !sortable_of(value, &kept))
		return;
	begin_member(object, n);
	json_quote(e->name, object);
	strbuf_add_char(object, ':');
	json_quote(strbuf_slice(&kept), object);
}

void function_describe(struct function_work *w)
{
	struct strbuf object;
	size_t n = 0;

	for (size_t i = 0; i < w->n; i++)
		w->describes |= tells(w->entries[i]);
	if (!w->describes)
		return;
	strbuf_init(&object, OBJECT_BYTES_MAX);
	strbuf_add_char(&object, '{');
	keep_old(w, &object, &n);
	for (size_t i = 0; i < w->n; i++)
		if (tells(w->entries[i]) && told_of(w, w->entries[i]->name) == w->entries[i])
			add_told(w->entries[i], &object, &n);
	strbuf_add_char(&object, '}');
	w->attributes = arena_keep(w->arena, &object);
	if (!n)
		w->attributes = slice_of(NULL, 0);
}
