/* See terminal.h. */
#include "cli/terminal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/utf8.h"
#include "model/text.h"

#define COLUMNS_DEFAULT 120
#define COLUMNS_MIN 40
#define COLUMNS_MAX 10000
#define TOLD_EVERY_NS 100000000

static bool is_dumb(void)
{
	const char *term = getenv("TERM");

	return !term || strcmp(term, "dumb") == 0;
}

bool terminal_wants_colour(void)
{
	const char *no = getenv("NO_COLOR");

	return isatty(STDOUT_FILENO) && !(no && *no) && !is_dumb();
}

static size_t columns_of(int fd)
{
	const char *text = getenv("COLUMNS");
	struct winsize size = {0};
	size_t n = COLUMNS_DEFAULT;

	if (ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_col > 0)
		n = size.ws_col;
	else if (text && text_is_number_up_to(text, COLUMNS_MAX))
		n = (size_t)atoi(text);
	return n < COLUMNS_MIN ? COLUMNS_MIN : n;
}

size_t terminal_columns(void)
{
	return columns_of(STDOUT_FILENO);
}

size_t terminal_told_columns(void)
{
	return columns_of(STDERR_FILENO);
}

bool terminal_is_watched(void)
{
	return isatty(STDERR_FILENO) && !is_dumb();
}

void terminal_tell(const char *line)
{
	size_t room = terminal_told_columns() - 1, n = 0;

	while (line[n] && room-- > 0)
		do
			n++;
		while (utf8_continues((unsigned char)line[n]));
	fprintf(stderr, "\r\033[K%.*s", (int)n, line);
	fflush(stderr);
}

bool terminal_is_due(struct mono_time *told)
{
	struct mono_time now = clock_mono(clock_system());

	if (told->ns && now.ns - told->ns < TOLD_EVERY_NS)
		return false;
	*told = now;
	return true;
}
