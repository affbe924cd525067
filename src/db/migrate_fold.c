/* See migrate_fold.h. It reads our own texts, each statement of which begins on a line of its own. */
#include "db/migrate_fold.h"

#include <string.h>

#define ALTER "\nALTER TABLE "
#define ADD_COLUMN " ADD COLUMN "
#define COLUMN_BYTES_MAX 4096

static bool begins(const char *text, const char *with)
{
	return strncmp(text, with, strlen(with)) == 0;
}

/* The last line before `end` that says this of a table; NULL: there is none. */
static char *find_last(char *from, const char *end, const char *verb, struct slice table, const char *rest)
{
	char *found = NULL;

	while ((from = strstr(from, verb)) && from < end) {
		const char *name = from + strlen(verb);

		if (memcmp(name, table.p, table.n) == 0 && begins(name + table.n, rest))
			found = from;
		from++;
	}
	return found;
}

/* So that another one has its name by the line at `end`, if any has. */
static bool is_gone(char *make, const char *end, struct slice table)
{
	return find_last(make, end, ALTER, table, " RENAME ") ||
	       find_last(make, end, "\nDROP TABLE ", table, ";"); /* mutant: folded-into-a-dropped-table -> 0; */
}

static bool begins_constraint(const char *text)
{
	static const char *const words[] = {"PRIMARY KEY", "UNIQUE", "CHECK", "FOREIGN KEY", "CONSTRAINT"};
	size_t i = 0;

	while (text += strspn(text, " \n"), begins(text, "--"))
		text += strcspn(text, "\n");
	while (i < sizeof words / sizeof *words && !begins(text, words[i]))
		i++;
	return i < sizeof words / sizeof *words;
}

/* Where SQLite puts a column that is added, too: before the first constraint of the table, or its closing bracket. */
static char *end_of_columns(char *at)
{
	int depth = 0;

	do {
		if (begins(at, "--"))
			at += strcspn(at, "\n");
		else if (*at == '\'')
			at += 1 + strcspn(at + 1, "'");
		depth += (*at == '(') - (*at == ')');
		ASSERT(*at);
		at++;
	} while (depth > 0 && !(depth == 1 && *at == ',' && begins_constraint(at + 1)));
	return depth ? at : at - 1;
}

/* Of the line after `alter`; returns where the next may stand. */
static char *fold_line(struct strbuf *script, char *alter)
{
	char *line = alter + 1, *name = alter + strlen(ALTER), *column = name + strcspn(name, " \n"), *make, *to;
	const struct slice table = slice_of(name, (size_t)(column - name));
	const char *end;
	LOCAL_STRBUF(text, COLUMN_BYTES_MAX);

	if (!begins(column, ADD_COLUMN))
		return line;
	make = find_last(script->p, alter, "\nCREATE TABLE ", table, " (");
	if (!make || is_gone(make, alter, table))
		return line;
	column += strlen(ADD_COLUMN);
	strbuf_addf(&text, ", %.*s", (int)strcspn(column, ";"), column);
	ASSERT(!text.failed);
	end = strchr(column, ';') + 1;
	end += strspn(end, " ");
	ASSERT(*end == '\n' || *end == '\0' || begins(end, "--")); /* it goes with the line */
	end = line + strcspn(line, "\n");
	end += *end == '\n';
	to = end_of_columns(strchr(make, '('));
	memmove(to + text.n, to, (size_t)(line - to));
	memcpy(to, text.p, text.n);
	line += text.n;
	memmove(line, end, (size_t)(script->p + script->n + 1 - end));
	script->n -= (size_t)(end - line);
	return line - 1;
}

void migrate_fold(struct strbuf *script)
{
	char *at = script->p;

	while ((at = strstr(at, ALTER)))
		at = fold_line(script, at);
}
