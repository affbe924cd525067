/*
 * Expressions: `input`, `when` and `output` of a run definition, a small pure subset of jq.
 *
 *   {sku: .input.sku, total: (.state.quote.total // 0)}         .input.total > 1000 and (.state.vip | not)
 *
 * An expression is one JSON value computed from {input, state, steps}. There is no arithmetic, no variable, no loop,
 * no recursion, no environment and no I/O, so it ends, and it gives the same answer on every node and after every
 * restart. What is accepted here means the same in jq 1.6 and later; much of jq is refused, and so is what its versions
 * read differently (an index of 1.5, `.a.["b"]`, `{a: .b == 1}`).
 *
 *   pipe     = alt { "|" alt }                              lowest; the right side sees the left one's value as `.`
 *   alt      = or { "//" or }                               the first that is neither null nor false, else the last
 *   or       = and { "or" and }                             true or false; stops at the first that decides
 *   and      = compare { "and" compare }
 *   compare  = term [ ( "==" | "!=" | "<" | "<=" | ">" | ">=" ) term ]
 *   term     = base { step }
 *   base     = "." | "." name | "." string | number | string | "true" | "false" | "null"
 *            | "not" | "length" | "has" "(" pipe ")" | "(" pipe ")" | array | object
 *   step     = "." name | "." string | "[" string "]" | "[" integer "]"
 *   array    = "[" "]" | "[" pipe "]" | "[" alt { "," alt } "]"
 *   object   = "{" "}" | "{" member { "," member } "}"
 *   member   = name | string                                {sku} is {sku: .sku}
 *            | ( name | string | "(" pipe ")" ) ":" value
 *   value    = term { "|" term }                            other operators stand in parentheses, as jq wants it
 *   name     = letter or _ { letter, digit or _ }           string, number: as in JSON
 *   space between tokens: blank, tab, line feed
 *
 *   a path      into null is null; a missing member or element is null; into another type it is an error
 *   .[-1]       counts from the end
 *   truth       null and false are false, all else is true; an error to the left of // stays an error
 *   order       null < false < true < numbers < strings (code points) < arrays (by elements) < objects (by their
 *               sorted names, then by the values in that order)
 *   length      of null 0, of a string its code points, of a number its absolute value; of a boolean an error
 *   has(x)      an object with a string, an array with an integer; null has nothing; others are errors
 *
 * Numbers are compared by their exact value (1 == 1.0, 2^53 < 2^53 + 1, 1e400 < 1e401) and copied as they were
 * written, from end to end; so are strings. Here jq, which has doubles, is less exact.
 *
 * Where an object of the input has one name twice, the first counts, as in json_find(): for a path, for has and for
 * the order. (jq takes the last.) Only length counts both, and copied as a whole it stays as it is. An object that is
 * constructed here never has a name twice: written names are checked when parsing, and of computed ones the last
 * value counts, as in jq.
 */
#pragma once

#include "base/arena.h"
#include "base/json.h"
#include "base/strbuf.h"

#define EXPRESSION_BYTES_MAX 4096
/* Brackets of all kinds that may be open at once. */
#define EXPRESSION_DEPTH_MAX 64
/*
 * What one evaluation may do, in bytes read or written, so that the worst takes less than a second. It is no limit for
 * the documents of daily life, but for the comparison of two objects with some 100,000 members each, which are sorted.
 */
#define EXPRESSION_WORK_MAX (256u << 20)

/* Immutable; any number of threads may evaluate it at once. */
struct expression;

/* What `.` is at the beginning. All are checked JSON without space around it; one whose raw.p is NULL is not there. */
struct expression_env {
	struct json input;
	struct json state;
	struct json steps;
	struct json item, index; /* of a map, while the input of a child is made */
	struct json whole;       /* or else `.` is this object, and nothing above counts */
};

/* What a path may begin with: everywhere in a run, and where there is an item besides. Each ends with NULL. */
extern const char *const expression_run_roots[], *const expression_item_roots[];

/*
 * The expression lives in the arena, and so does a copy of the text: the caller's may go. The text bounds the number
 * of its nodes. HX_VALIDATION_ERROR, the detail reading "column N: what is wrong", N counting characters from 1;
 * HX_TOO_LARGE for text that is too long and for a full arena; HX_NO_MEMORY.
 */
enum hx_code expression_parse(struct slice text, struct arena *a, struct hx_error *err,
			      const struct expression **ret) HX_MUST_CHECK;
/* As it was written. */
struct slice expression_text(const struct expression *expression);

/*
 * For the load: a path that begins at the environment with a name that is not among these. It would be null for ever.
 * HX_VALIDATION_ERROR with the column of the first one and the nearest name.
 */
enum hx_code expression_check_roots(const struct expression *expression, const char *const *roots,
				    struct hx_error *err) HX_MUST_CHECK;

/*
 * For the load: what an expression looks at. Called for each `.ROOT.NAME` that begins at the environment (`.state.a`
 * also of `.state.a.b`), with the column of the path. `.state` as a whole, and what is after a pipe, names nothing.
 */
typedef void expression_use_fn(void *context, struct slice root, struct slice name, size_t column);
void expression_each_use(const struct expression *expression, expression_use_fn *use, void *context);

/*
 * Appends the value, which is JSON that json_check() accepts. The scratch arena is given back as it was found; its
 * ceiling, that of the buffer, EXPRESSION_WORK_MAX and JSON_DEPTH_MAX are limits: HX_TOO_LARGE (or HX_NO_MEMORY).
 * HX_VALIDATION_ERROR where the value has a type that the expression cannot take, the detail naming column, path
 * and type. On an error nothing is appended.
 */
enum hx_code expression_eval(const struct expression *expression, const struct expression_env *env,
			     struct arena *scratch, struct hx_error *err, struct strbuf *ret_text) HX_MUST_CHECK;
