/*
 * Reading one field after another out of a JSON tree, with a finding for each that is not what it should be.
 *
 * A reader is cheap and copied at will: a step, an action or a requester gets a copy that knows where it is, and
 * every finding made through it says so. A reader without `findings` is silent, for a second look at what a first
 * one has reported.
 *
 * All functions take a node that may be NULL (its absence was accepted or reported before) and then return false.
 * Outputs are written only on success; texts are copied into the reader's arena.
 */
#pragma once

#include "base/excerpt.h"
#include "base/json_tree.h"
#include "model/expression.h"
#include "model/findings.h"
#include "model/nearest.h"

struct reader {
	struct findings *findings; /* NULL: silent */
	struct arena *arena;
	struct finding place; /* file, workflow, step and requester as far as they are known */
	const char *kind;  /* of the definition that is read: "entity", "run", "batch", "function"; NULL: it is none */
	const char *where; /* "meta.columns", "action CloseBilling": put in front of the text; NULL: nothing */
	const struct action_list *actions; /* of the definition that is read */
	const void *draft;                 /* of an entity: what of it is known so far (draft.h) */
};

/* 1 to 64 bytes of A-Z a-z 0-9 _ . - : names stand in URLs, in logs and, between bars, in the history's chain. */
bool name_is_valid(struct slice name);

/* nearest_words() in quotes for the first SUGGESTIONS_MAX findings: the millionth fault of a text must not cost a search. */
#define SUGGESTIONS_MAX 50
struct suggestion reader_suggest(const struct reader *r, struct slice name, const char *const *known);
void reader_report(const struct reader *r, size_t line, const char *rule, const char *format, ...) HX_PRINTF(4, 5);
void reader_warn(const struct reader *r, size_t line, const char *rule, const char *format, ...) HX_PRINTF(4, 5);
/* What json.h has to say: its detail begins with "LINE:COLUMN: ". */
void reader_report_json(const struct reader *r, const struct hx_error *err);

/*
 * A whole configuration file: `read` gets its root. All findings are in the order of their lines; *ret_file is the file's
 * name, kept. False: the reader's arena is full, which is reported.
 */
#define CONFIG_BYTES_MAX (1u << 20)
bool reader_configuration(const struct reader *r, struct slice text,
			  void (*read)(const struct reader *r, const struct json_node *root, void *config),
			  void *config, const char **ret_file);

/* The node is an object; reports it otherwise. */
bool reader_object(const struct reader *r, const struct json_node *node, const char *what);
/* The same for an array of min to max elements. */
bool reader_array(const struct reader *r, const struct json_node *node, const char *what, size_t min, size_t max);
/* The same, with room for a value of that size for each of them and for one more, all zero. NULL also where there is none. */
void *reader_list(const struct reader *r, const struct json_node *node, const char *what, size_t min, size_t max,
		  size_t size);
/* Likewise for an object whose members have names of their own choice. */
void *reader_map(const struct reader *r, const struct json_node *node, const char *what, size_t max, size_t size);
/* The member; reports it when there is none. */
const struct json_node *reader_required(const struct reader *r, const struct json_node *object, const char *name);

bool reader_string(const struct reader *r, const struct json_node *node, const char *what);
/* A string that is not empty, has at most max_bytes and no control character. */
bool reader_text(const struct reader *r, const struct json_node *node, const char *what, size_t max_bytes,
		 const char **ret);
bool reader_name(const struct reader *r, const struct json_node *node, const char *what, const char **ret);
bool reader_duration(const struct reader *r, const struct json_node *node, const char *what, int64_t *ret_ms);
/* The same, with a warning where it is too short to be kept by a machine that has more to do. */
bool reader_lease(const struct reader *r, const struct json_node *node, const char *what, int64_t *ret_ms);
/* What both configurations have: store_timeout where none is given. */
#define READER_STORE_TIMEOUT_MS 2000
bool reader_int(const struct reader *r, const struct json_node *node, const char *what, int64_t min, int64_t max,
		int64_t *ret);
bool reader_bool(const struct reader *r, const struct json_node *node, const char *what, bool *ret);
/* One of the names of a list that ends with NULL; *ret is its place in it. */
bool reader_choice(const struct reader *r, const struct json_node *node, const char *what, const char *const *names,
		   int *ret);
/* sqlite:PATH or postgres://…; with `any` also memory: and redis://…. Never repeated: it may hold a password. */
#define READER_PATH_BYTES_MAX 4096
bool reader_store(const struct reader *r, const struct json_node *node, const char *what, bool any, const char **ret);
/* ADDRESS:PORT, for its form. */
bool reader_address(const struct reader *r, const struct json_node *node, const char *what, const char **ret);

/* An expression whose paths begin with these names (model/expression.h). */
void reader_expression(const struct reader *r, const struct json_node *node, const char *what, const char *const *roots,
		       const struct expression **ret);
/* The same for a text that stands within the node. */
void reader_parse(const struct reader *r, const struct json_node *node, struct slice text, const char *what,
		  const char *const *roots, const struct expression **ret);

/* What findings call a step: its name, or "#3" where that is not usable. */
const char *reader_label(const struct json_node *name, size_t i, struct arena *scratch);
/* The copy with a terminator; NULL when the arena has failed. */
const char *reader_keep(const struct reader *r, struct slice text);
