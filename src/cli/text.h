/* Texts that are files of their own, in src/cli/text/; the build makes them part of the program. */
#pragma once

#include "base/packed.h"

/* Scripts, see completion.c. */
extern const struct packed text_completion_bash, text_completion_zsh;
/* What `hapax init` writes, see init.c: two definitions, a configuration, a README that explains them and is walked by a test.
 * JSON has no comments, and an unknown field is refused: what the fields mean is said in the README. */
extern const struct packed project_plain;
/* Those of `hapax init --js` and `--python`, with the client as it is in clients/: it is not published. */
extern const struct packed project_js, project_python;
