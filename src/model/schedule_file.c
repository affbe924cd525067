/* See schedule_file.h. */
#include "model/schedule_file.h"

#include "base/json_members.h"
#include "base/json_string.h"
#include "base/json_walk.h"
#include "model/reader.h"

static bool member_is(struct json root, const char *member, const char *word)
{
	struct json value;

	return json_find(root, slice_str(member), &value) && json_type(value) == JSON_STRING &&
	       json_string_is(value, slice_str(word));
}

bool schedule_file_is(struct slice text)
{
	struct json root;

	return json_check(text, /* err= */ NULL, &root) == HX_OK && json_type(root) == JSON_OBJECT &&
	       member_is(root, "kind", "schedule");
}

/* The words of an error begin with the member that it is about. */
static size_t line_of(struct slice text, struct json root, const char *detail)
{
	struct json_iter it = json_iter_of(root);
	struct json name, value;
	const char *word = detail + (detail[0] == '"');
	struct slice member = slice_of(word, strcspn(word, "\": ,"));

	while (json_iter_member(&it, &name, &value))
		if (json_string_is(name, member))
			return json_locate(text, (size_t)(name.raw.p - text.p)).line;
	return 1;
}

static enum hx_code read_name(struct json root, struct arena *arena, struct hx_error *err, struct slice *ret_name)
{
	struct json value;

	if (json_find(root, slice_str("schedule"), &value) && json_type(value) == JSON_STRING) {
		*ret_name = json_string_decode(value, arena);
		if (ret_name->p && name_is_valid(*ret_name))
			return HX_OK;
	}
	return error_set(err, HX_VALIDATION_ERROR, "schedule is its name: 1 to 64 characters of A-Z a-z 0-9 _ . -");
}

const struct schedule_file *schedule_file_parse(const char *file, struct slice text, struct arena *arena,
						struct findings *findings)
{
	struct schedule_file *parsed = arena_zalloc(arena, sizeof *parsed);
	struct slice kept = arena_copy(arena, text);
	struct strbuf written;
	struct hx_error err;
	struct json root;
	enum hx_code code = parsed && kept.p ? json_check(kept, &err, &root)
					     : error_set(&err, HX_NO_MEMORY, "no memory");

	if (!code)
		code = json_check_unique(root, arena, &err);
	if (!code)
		code = read_name(root, arena, &err, &parsed->name);
	if (!code)
		code = schedule_spec_read(root, /* file= */ true, arena, &err, &parsed->spec);
	if (code) {
		findings_add(findings,
			     (struct finding){.severity = FINDING_ERROR,
					      .file = file,
					      .line = kept.p ? line_of(kept, root, err.detail) : 1,
					      .rule = "schedule"},
			     "%s", err.detail);
		return NULL;
	}
	strbuf_init(&written, 4 * text.n + 4096);
	schedule_spec_write(&parsed->spec, &written);
	parsed->text = arena_keep(arena, &written);
	parsed->file = file;
	return parsed->text.p ? parsed : NULL;
}
