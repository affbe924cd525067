/* Texts that are files of their own, in src/cli/text/; the build makes them part of the program. */
#pragma once

/* Scripts, see completion.c. */
extern const char text_completion_bash[], text_completion_zsh[];
/* The project that `hapax init` writes: two definitions, a configuration, a README that explains them and is walked by a test.
 * JSON has no comments, and an unknown field is refused: what the fields mean is said in the README. */
extern const char text_order_json[], text_welcome_json[], text_hapax_json[], text_README_md[];
