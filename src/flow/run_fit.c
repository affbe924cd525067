/* See run_fit.h. */
#include "flow/run_fit.h"

#include <string.h>

#include "base/json_string.h"
#include "base/json_walk.h"
#include "flow/run.h"

static bool misfit(struct run_misfit *ret, const char *step, const char *why, const char *other)
{
	*ret = (struct run_misfit){step, why, other};
	return false;
}

/* The name that a step of this name is to have. */
static struct slice name_now(struct json renames, const char *name)
{
	struct json now;

	if (!json_find(renames, slice_str(name), &now))
		return slice_str(name);
	return slice_of(now.raw.p + 1, now.raw.n - 2);
}

/* ---- a step ---- */

static bool same_branch(const struct run_part *a, const struct run_part *b)
{
	return (!a->branch && !b->branch) || (a->branch && b->branch && strcmp(a->branch, b->branch) == 0);
}

/* Children are known by their numbers. */
static bool parts_fit(const struct run_step *was, const struct run_step *is)
{
	if (was->parts_n > is->parts_n || !was->parts_n != !is->parts_n)
		return false;
	for (size_t i = 0; i < was->parts_n; i++)
		if (!same_branch(&was->parts[i], &is->parts[i]))
			return false;
	return true;
}

/* What the step still asks for while it goes on: how many children there are to be, and which, and when they are enough. */
static bool goes_on_alike(const struct run_step *was, const struct run_step *is)
{
	if (was->type == RUN_PARALLEL)
		return was->joins_any == is->joins_any;
	if (was->type != RUN_MAP)
		return true;
	return slice_eq(expression_text(was->over), expression_text(is->over)) &&
	       (!was->workflow || strcmp(was->workflow, is->workflow) == 0);
}

static bool step_fits(struct json renames, const struct run_step *was, const struct run_definition *to, size_t position,
		      bool goes_on, struct run_misfit *ret)
{
	const struct run_step *is = &to->steps[position];

	if (position == to->steps_n)
		return misfit(ret, was->name, "the other version is at its end there", NULL);
	if (!slice_is(name_now(renames, was->name), is->name)) /* mutant: fits-by-place -> if (0) */
		return misfit(ret, was->name, "the other version has another one in its place: ", is->name);
	if (was->type != is->type) /* mutant: fits-of-another-type -> if (0) */
		return misfit(ret, was->name, "it has another type: ", run_step_type_name(is->type));
	if (run_step_has_children(was) && !parts_fit(was, is))
		return misfit(ret, was->name, "its children would be others", NULL);
	if (goes_on && !goes_on_alike(was, is))
		return misfit(ret, was->name, "it has begun, and would start other children from now on", NULL);
	return true;
}

bool run_fit(struct json renames, const struct run_definition *from, const struct run_definition *to,
	     struct run_passed *passed, size_t n, bool begun, size_t *ret_stands, struct run_misfit *ret_misfit)
{
	size_t stood = 0, stands = 0;

	for (size_t i = 0; i < n; i++) {
		const struct run_step *was = &from->steps[passed[i].position];
		struct slice way = slice_str(passed[i].truth ? "true" : "false");

		if (!step_fits(renames, was, to, stands, /* goes_on= */ false, ret_misfit))
			return false;
		passed[i].to = stands;
		stood = run_next_position(from, passed[i].position, way);
		stands = run_next_position(to, stands, way);
	}
	*ret_stands = stands;
	if (!begun || stood == from->steps_n) /* mutant: begun-elsewhere -> if (1) */
		return true;
	return step_fits(renames, &from->steps[stood], to, stands, /* goes_on= */ true, ret_misfit);
}

/* ---- parts ---- */

static bool is_within(struct slice scope, const char *part)
{
	size_t n = strlen(part);

	return scope.n >= n && memcmp(scope.p, part, n) == 0 && (scope.n == n || scope.p[n] == '/');
}

/* The step and the number of the part that has this scope, or has it inside. */
static const struct run_step *step_around(const struct run_definition *definition, struct slice scope, size_t *ret_n)
{
	for (size_t i = 0; i < definition->steps_n; i++) {
		const struct run_step *step = &definition->steps[i];

		for (size_t k = 0; k < step->parts_n; k++)
			if (is_within(scope, step->parts[k].definition->scope)) {
				*ret_n = k;
				return step;
			}
	}
	return NULL;
}

const struct run_definition *run_fit_part(struct json renames, const struct run_definition *from,
					  const struct run_definition *to, struct slice scope,
					  const struct run_definition **ret_from, struct run_misfit *ret_misfit)
{
	size_t n = 0;

	for (;;) {
		const struct run_step *was = step_around(from, scope, &n), *is;

		ASSERT(was); /* a part of a run has a scope of its definition */
		is = run_definition_step(to, name_now(renames, was->name));
		if (!is || is->type != was->type || !parts_fit(was, is)) {
			(void)misfit(ret_misfit, was->name, "the other version has no place for its children", NULL);
			return NULL;
		}
		from = was->parts[n].definition;
		to = is->parts[n].definition;
		if (slice_is(scope, from->scope)) {
			*ret_from = from;
			return to;
		}
	}
}

/* ---- names ---- */

static bool is_called(const struct run_step *step, struct slice name)
{
	return slice_is(name, step->name);
}

static bool has(const struct run_definition *definition, struct slice name)
{
	return run_definition_search(definition, is_called, name).step != NULL;
}

static struct slice text_of(struct json string)
{
	return slice_of(string.raw.p + 1, string.raw.n - 2);
}

static void put(struct strbuf *out, struct slice name, struct slice in_keys)
{
	if (slice_eq(name, in_keys))
		return;
	strbuf_add_str(out, out->n > 1 ? "," : "");
	json_quote(name, out);
	strbuf_add_char(out, ':');
	json_quote(in_keys, out);
}

/* Each old name is one of the version that the run has and of the other no more, each new one the other way round; and none is there twice. */
static bool rename_fits(struct json renames, struct json was, struct json is, const struct run_definition *from,
			const struct run_definition *to, struct arena *arena, struct run_misfit *ret)
{
	const char *old = json_string_decode(was, arena).p, *new = json_string_decode(is, arena).p;
	struct json_iter it = json_iter_of(renames);
	struct json other, name;
	size_t n = 0;

	if (!old || !new)
		return misfit(ret, "", "the map of names is too large", NULL);
	while (json_iter_member(&it, &other, &name))
		n += slice_eq(text_of(name), slice_str(new));
	if (!has(from, slice_str(old)))
		return misfit(ret, old, "the version that the run has, has no step of this name", NULL);
	if (!has(to, slice_str(new)))
		return misfit(ret, new, "the other version has no step of this name", NULL);
	if (has(to, slice_str(old))) /* mutant: renamed-name-taken -> if (0) */
		return misfit(ret, old, "it is renamed, and the other version has another step of its name", NULL);
	if (has(from, slice_str(new)) || n > 1)
		return misfit(ret, new, "two steps would be this one", NULL);
	return true;
}

/* A name in keys that is a step's name as well must be that step's own. */
static bool keys_are_apart(struct json renamed, const struct run_definition *to, struct arena *arena,
			   struct run_misfit *ret)
{
	struct json_iter it = json_iter_of(renamed);
	struct json name, in_keys, own;

	while (json_iter_member(&it, &name, &in_keys)) {
		struct slice key = text_of(in_keys);

		if (has(to, key) && !json_find(renamed, key, &own)) /* mutant: two-of-one-key -> if (0) */
			return misfit(ret, arena_copy(arena, key).p, "its calls would have the keys of another step: ",
				      json_string_decode(name, arena).p);
	}
	return true;
}

bool run_fit_names(struct json renames, struct json renamed, const struct run_definition *from,
		   const struct run_definition *to, struct arena *arena, struct strbuf *ret_renamed,
		   struct run_misfit *ret_misfit)
{
	struct json_iter it = json_iter_of(renames);
	struct json was, is, in_keys, ignored;

	strbuf_add_char(ret_renamed, '{');
	while (json_iter_member(&it, &was, &is)) {
		if (!rename_fits(renames, was, is, from, to, arena, ret_misfit))
			return false;
		put(ret_renamed, text_of(is),
		    json_find(renamed, text_of(was), &in_keys) ? text_of(in_keys) : text_of(was));
	}
	it = json_iter_of(renamed);
	while (json_iter_member(&it, &is, &in_keys))
		if (!json_find(renames, text_of(is), &ignored) && has(to, text_of(is)))
			put(ret_renamed, text_of(is), text_of(in_keys));
	strbuf_add_char(ret_renamed, '}');
	return keys_are_apart(json_trust(strbuf_slice(ret_renamed)), to, arena, ret_misfit);
}
