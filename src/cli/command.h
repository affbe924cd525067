/*
 * What a command of `hapax` is: its words, its options, what it asks or does, and how its result is shown. Declared once,
 * as a row of a table (verbs_flow.c, verbs_local.c). Parsing, help, "did you mean", the list of exit codes, the completion
 * in shells (completion.c) and the option lists of the manual come from that, and one driver (verb.c) carries it out:
 *
 *   command_parse ─▶ a question: method, path, places of operands and options (question.c) ─▶ client_ask ─┐
 *                 └▶ or what the verb makes itself, as JSON (`make`) ─────────────────────────────────────┤
 *                                  --json: as it is            ◀── one JSON value ────────────────────────┘
 *                                  words: by its view (view.h) ◀─┘
 *
 * A verb has a function of its own only where it does something of its own: `ask` for one that asks more than one question
 * (it waits, it looks something up first) or another one than its row says, `make` for one that needs no server, `run` for one
 * whose result is no JSON value.
 *
 * A value is looked for in the flags, then in the environment, then there is the default.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/error.h"
#include "base/slice.h"

#define COMMAND_OPTIONS_MAX 24
#define COMMAND_OPERANDS_MAX 1024
#define COMMAND_WORDS_BYTES 40

/* Where in the question an operand or the value of an option goes. */
enum place_kind {
	PLACE_NONE,   /* nowhere: the program reads it itself */
	PLACE_QUERY,  /* a parameter of the query; of a switch "true" */
	PLACE_HEADER, /* a header field of all questions of the command */
	PLACE_TEXT,   /* a member of the body */
	PLACE_JSON, /* the same, JSON that is written here, in a file (@FILE) or comes over standard input (-); of a switch true */
	PLACE_NUMBER, /* the same, a whole number from min to max */
	PLACE_MONEY,  /* the same, of the smallest unit, in digits alone */
	PLACE_TIME,   /* the same, a time, or a duration from now on */
	PLACE_NAMES,  /* the same, an object: OLD=NEW, and more after commas */
	PLACE_WORD,   /* the same, done or not_done: what became of something unknown, in a person's word */
};

struct command_place {
	enum place_kind kind;
	const char *name;      /* of the parameter, field or member; NULL: as the option is called */
	int64_t min, max;      /* of numbers */
	const char *given;     /* PLACE_TEXT of a switch: the text if it is given … */
	const char *otherwise; /* … and if not. PLACE_QUERY: the parameter that is true then. NULL: none */
};

struct command_option {
	const char *name;  /* without the dashes */
	const char *value; /* what stands for it in the help, "URL", and how it is completed; NULL: a switch */
	const char *help;  /* with [default: …], unless there is a fallback, or it is needed: then that is added */
	struct command_place to;  /* where it goes */
	const char *env;          /* NULL: none */
	const char *fallback;     /* the default; NULL: none */
	const char *const *words; /* the only values there are, ending with NULL; NULL: any */
	const char *workflows;    /* it names a workflow of this kind: below an empty list the nearest is told */
	char letter;              /* after one dash; 0: none. Its value is the next argument */
	bool alone;               /* its value begins with a digit, and may be left out: then it is "" */
	bool needed;              /* the command does nothing without it */
};

struct command_exit {
	enum hx_code code;
	const char *when;
};

struct client;
struct command_args;
struct strbuf;
struct verb_answer;
struct view;

struct command {
	const char *noun;
	const char *verb;        /* NULL: the noun says it all */
	const char *operands;    /* beside the options: "PATH…", "ID done|not_done", "WORKFLOW [ID]"; NULL: none */
	const char *summary;     /* one line, without a full stop */
	const char *method;      /* of what it asks; NULL: it asks nobody */
	const char *path;        /* {ID} is the operand ID. Of {RUN}, WORKFLOW/KEY is another way to say it */
	const struct view *view; /* how the result is shown */
	const struct command_place *members; /* of the operands that the path does not name, in order */
	bool to_gate;                        /* the admin address of a gate is asked, and no server */
	bool dashed; /* an operand may begin with a dash, as a key of somebody else's may; with two it stands after -- */
	bool fewer;  /* its function sees to it how many operands there are */
	/* Its own; what all that ask have in common is added to them. They end with NULL, and with HX_OK. NULL: none. */
	const struct command_option *const *options;
	const struct command_exit *exits;
	/* At most one of these three. Asks in a way of its own. */
	enum hx_code (*ask)(struct client *client, const struct command_args *args, struct verb_answer *ret_answer,
			    struct hx_error *err);
	/* Does it here, and writes the result as JSON. With an error, what was written until then is a result too. */
	enum hx_code (*make)(const struct command_args *args, struct strbuf *out, struct hx_error *err);
	/* Does everything, and writes to standard output. */
	enum hx_code (*run)(const struct command_args *args, struct hx_error *err);
};

struct command_args {
	const struct command *command;
	const char *values[COMMAND_OPTIONS_MAX]; /* in the order of command_option(); NULL: not given */
	size_t operands_n;
	const char *operands[COMMAND_OPERANDS_MAX];
	bool help;
};

/* The tables, each ending with an entry without a noun. */
extern const struct command verbs_serving[], verbs_flow[], verbs_store[];
/* All of them in the order of the help, those of a noun together; NULL past the last. */
const struct command *command_at(size_t i);

/* What the commands that ask a server, or a gate, have besides their own; both end as those do. */
extern const struct command_option *const server_options[], *const gate_options[];
extern const struct command_exit asking_exits[];
/* All options and exit codes of a command, its own and those; NULL past the last. */
const struct command_option *command_option(const struct command *command, size_t i);
const struct command_exit *command_exit(const struct command *command, size_t i);

/* The lists of a row, each as long as it is: OPTIONS(OPTION(…), …). */
#define MEMBERS(...) ((const struct command_place[]){__VA_ARGS__})
#define OPTIONS(...) ((const struct command_option *const[]){__VA_ARGS__, NULL})
#define EXITS(...) ((const struct command_exit[]){__VA_ARGS__, {HX_OK, NULL}})
/* An option in its place in the table. */
#define OPTION(...) (&(const struct command_option){.name = __VA_ARGS__})
/* One that many rows have, each by its address. */
#define SHARED_OPTION(variable, ...) static const struct command_option variable = {.name = __VA_ARGS__}
/* Where it goes: TO(QUERY), TO(TEXT, "idempotencyKey"). */
#define TO(...)                                                                                                        \
	{                                                                                                              \
		.kind = PLACE_##__VA_ARGS__                                                                            \
	}

/* Is the store an SQLite file that is not there? Opening it to read would fail, to write would make it. */
bool command_store_is_missing(const char *url);
/* HX_NOT_FOUND: it is. hint: what then helps who has called this verb. */
enum hx_code command_want_store(const char *url, const char *hint, struct hx_error *err) HX_MUST_CHECK;
#define STORE_HINT "--db says where it is"
#define STORE_HINT_MAKE STORE_HINT "; hapax db migrate makes one" /* where a new one would do */

/* Reads what stands after the words of the command. HX_VALIDATION_ERROR names what is wrong and what is near. */
enum hx_code command_parse(const struct command *command, int argc, char *const argv[], struct command_args *ret_args,
			   struct hx_error *err) HX_MUST_CHECK;
/* That there are as many operands as the command wants, none of them empty, and the options that it needs. */
enum hx_code command_check(const struct command_args *args, struct hx_error *err) HX_MUST_CHECK;

/* One of "WORKFLOW [ID]", "PATH…". */
struct operand {
	struct slice text; /* "ID", "done|not_done" */
	bool optional, many;
};
/* The next one; false: there is none. `*at` begins with command->operands. Of "WORKFLOW | ID" the first stands for both. */
bool command_next_operand(const char **at, struct operand *ret);

/* What is said about an option wherever all of them are listed: its help, and after it this. */
const char *command_help_more(const struct command_option *option);
bool command_has(const struct command *command, const char *option);
/* The value of an option, NULL if the command has none of this name. A switch that was given has the value "". */
const char *command_value(const struct command_args *args, const char *option);
/* The same for one without a fallback, after which a configuration and then a default are asked. */
const char *command_value_or(const struct command_args *args, const char *option, const char *configured,
			     const char *fallback);
void command_help(const struct command *command, FILE *out);
/* "db status", "check": .text lives as long as the expression that it stands in. */
struct command_words {
	char text[COMMAND_WORDS_BYTES];
};
struct command_words command_words(const struct command *command);
