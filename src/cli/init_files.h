/* The project that `hapax init` writes: two definitions, a configuration, a README that explains them and is walked by a test. */
#ifndef HX_CLI_INIT_FILES_H
#define HX_CLI_INIT_FILES_H

#include <stddef.h>

#define INIT_FOLDER "workflows"

struct init_file {
	const char *path; /* in the project, or in its INIT_FOLDER */
	const char *text;
};

extern const struct init_file init_files[];
extern const size_t init_files_n;
/* What there is in the project itself; ends with NULL. The last is there when all is. */
extern const char *const init_entries[];

/* What the README begins with, as it is printed. */
#define INIT_COMMANDS                                                                                                  \
	"  hapax check --strict workflows --config hapax.json\n"                                                       \
	"  hapax serve --config hapax.json\n"                                                                          \
	"  hapax entity create order o-1 && hapax entity fire order o-1 pay && hapax entity fire order o-1 ship"

#endif
