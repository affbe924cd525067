/*
 * What a command of `hapax` is: its words, its options, what it does. Declared once, as a constant; parsing, help,
 * "did you mean", the list of exit codes and the completion in shells (completion.c) all come from that.
 *
 * A value is looked for in the flags, then in the environment, then there is the default (CONTRACT.md).
 */
#ifndef HX_CLI_COMMAND_H
#define HX_CLI_COMMAND_H

#include <stdbool.h>
#include <stdio.h>

#include "base/error.h"

#define COMMAND_OPTIONS_MAX 16
#define COMMAND_EXITS_MAX 16
#define COMMAND_OPERANDS_MAX 1024
#define COMMAND_WORDS_BYTES 40

struct command_option {
	const char *name;     /* without the dashes */
	char letter;          /* behind one dash; 0: none. Its value is the next argument */
	const char *value;    /* what stands for it in the help, "URL", and how it is completed; NULL: a switch */
	const char *env;      /* NULL: none */
	const char *fallback; /* the default; NULL: none */
	const char *help;
	const char *const *words; /* the only values there are, ending with NULL; NULL: any */
	bool alone;               /* its value begins with a digit, and may be left out: then it is "" */
	bool needed;              /* the command does nothing without it, and says so itself */
};

struct command_exit {
	enum hx_code code;
	const char *when;
};

struct command_args;

struct command {
	const char *noun;
	const char *verb;     /* NULL: the noun says it all */
	const char *operands; /* what may stand beside the options, "PATH…", "ID done|not_done"; NULL: nothing */
	const char *summary;  /* one line, without a full stop */
	bool dashed; /* an operand may begin with a dash, as a key of somebody else's may; with two it stands behind -- */
	const struct command_option *options[COMMAND_OPTIONS_MAX]; /* ends with NULL */
	struct command_exit exits[COMMAND_EXITS_MAX];              /* ends with HX_OK */
	/* Writes its result to standard output; what went wrong is told by main, from the error. */
	enum hx_code (*run)(const struct command_args *args, struct hx_error *err);
};

struct command_args {
	const struct command *command;
	const char *values[COMMAND_OPTIONS_MAX]; /* in the order of command->options; NULL: not given */
	size_t operands_n;
	const char *operands[COMMAND_OPERANDS_MAX];
	bool help;
};

/* Options that several commands have. */
extern const struct command_option option_db;
extern const struct command_option option_no_migrate;
extern const struct command_option option_json;
extern const struct command_option option_json_errors; /* instead, where the result is a picture or a script */
/* Is the store an SQLite file that is not there? Opening it to read would fail, to write would make it. */
bool command_store_is_missing(const char *url);

/* Reads what stands behind the words of the command. HX_VALIDATION_ERROR names what is wrong and what is near. */
enum hx_code command_parse(const struct command *command, int argc, char *const argv[], struct command_args *ret_args,
			   struct hx_error *err) HX_MUST_CHECK;
/* That there are so many operands, none of them empty. HX_VALIDATION_ERROR says what the command wants. */
enum hx_code command_want_operands(const struct command_args *args, size_t least, size_t most,
				   struct hx_error *err) HX_MUST_CHECK;
/* The value of an option that the command has. A switch that was given has the value "". */
const char *command_value(const struct command_args *args, const struct command_option *option);
/* The same for one without a fallback, behind which a configuration and then a default are asked. */
const char *command_value_or(const struct command_args *args, const struct command_option *option,
			     const char *configured, const char *fallback);
void command_help(const struct command *command, FILE *out);
/* "db status", "check" */
const char *command_words(const struct command *command, char ret_text[COMMAND_WORDS_BYTES]);

/* All of them, in the order of the help; ends with NULL (main.c). */
extern const struct command *const commands[];

extern const struct command command_serve;
extern const struct command command_dev;
extern const struct command command_gate;
extern const struct command command_gate_show;
extern const struct command command_gate_forget;
extern const struct command command_gate_list;
extern const struct command command_gate_resolve;
extern const struct command command_init;
extern const struct command command_check;
extern const struct command command_graph;
extern const struct command command_entity_create;
extern const struct command command_entity_show;
extern const struct command command_entity_list;
extern const struct command command_entity_fire;
extern const struct command command_entity_resolve;
extern const struct command command_entity_history;
extern const struct command command_run_start;
extern const struct command command_run_show;
extern const struct command command_run_list;
extern const struct command command_run_history;
extern const struct command command_run_cancel;
extern const struct command command_run_retry;
extern const struct command command_run_pause;
extern const struct command command_run_resume;
extern const struct command command_run_signal;
extern const struct command command_run_approve;
extern const struct command command_run_resolve;
extern const struct command command_batch_start;
extern const struct command command_batch_add;
extern const struct command command_batch_show;
extern const struct command command_batch_list;
extern const struct command command_batch_items;
extern const struct command command_batch_cancel;
extern const struct command command_batch_accept;
extern const struct command command_batch_resolve;
extern const struct command command_account_create;
extern const struct command command_account_show;
extern const struct command command_account_list;
extern const struct command command_account_credit;
extern const struct command command_account_ledger;
extern const struct command command_job_push;
extern const struct command command_job_show;
extern const struct command command_job_list;
extern const struct command command_job_redrive;
extern const struct command command_why;
extern const struct command command_attention;
extern const struct command command_audit;
extern const struct command command_key_create;
extern const struct command command_key_list;
extern const struct command command_key_revoke;
extern const struct command command_db_status;
extern const struct command command_db_migrate;
extern const struct command command_db_backup;
extern const struct command command_db_raise_fences;
extern const struct command command_completion;

#endif
