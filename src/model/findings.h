/*
 * Findings: what is wrong or doubtful in definitions and configuration. A check goes on after each of them, so that
 * one look shows all; whoever asked counts the errors at the end.
 *
 * There is a ceiling: FINDINGS_MAX are kept, the rest is only counted, and a last one says so. The same last one
 * stands in for those that found no memory. So the list may be incomplete, the counts never are.
 */
#pragma once

#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/log.h"
#include "base/strbuf.h"

#define FINDINGS_MAX 1000

enum finding_severity { FINDING_ERROR, FINDING_WARNING };

/* Texts belong to the arena of the check and are never NULL: empty, and line 0, where it does not apply. */
struct finding {
	enum finding_severity severity;
	const char *file;
	size_t line;
	const char *workflow, *step, *requester;
	const char *rule; /* "rule 4", "unknown field", "json" … */
	const char *text;
	struct finding *next;
};

struct findings {
	struct arena *arena;
	struct finding *first, **last;
	size_t errors, warnings; /* all of them, also those that were not kept */
	size_t kept;
	struct finding overflow;
};

/* The struct must stay where it is: the list ends inside of it. */
void findings_init(struct findings *findings, struct arena *arena);
/* Everything but the text is taken from `finding` (NULL is empty) and copied, but `rule`, which is a constant. */
void findings_add(struct findings *findings, struct finding finding, const char *format, ...) HX_PRINTF(3, 4);
void findings_addv(struct findings *findings, struct finding finding, const char *format, va_list args);
/* Sorts by line what was added since findings->last was `from`; equal lines keep their order. */
void findings_sort(struct findings *findings, struct finding **from);

const char *finding_severity_name(enum finding_severity severity);
/* "billing.json:12: error: workflow billing, step close, requester admin: rule 4: claim_into is the step's status" */
void finding_print(const struct finding *finding, struct strbuf *out);
/* All of them, a line for each. */
void findings_print(const struct findings *findings, FILE *out);
/* The same for a server that goes on, whose log has one form: an event for each, with the message of its kind. */
void findings_log(const struct findings *findings, struct log *log, const char *if_error, const char *if_warning);
/* {"severity":"error","file":"billing.json","line":12,"workflow":…,"step":…,"requester":…,"rule":…,"text":…} */
void finding_print_json(const struct finding *finding, struct strbuf *out);
