/* Texts that are files of their own, in src/cli/text/; the build makes them part of the program. */
#pragma once

#include "base/packed.h"

/* Scripts, see completion.c. */
extern const struct packed text_completion_bash, text_completion_zsh;
/* The project that `hapax init` writes: two definitions, a configuration, a README that explains them and is walked by a test.
 * JSON has no comments, and an unknown field is refused: what the fields mean is said in the README. */
extern const struct packed text_order_json, text_welcome_json, text_hapax_json, text_README_md;
/* Those of `hapax init --js` and `--python`, with the client as it is in clients/: it is not published. */
extern const struct packed text_README_js_md, text_package_json, text_order_mjs, text_worker_mjs, text_test_mjs;
extern const struct packed client_client_js, client_index_js, client_index_d_ts, client_run_js, client_test_js;
extern const struct packed text_README_python_md, text_order_py, text_worker_py, text_test_order_py;
extern const struct packed client_init_py, client_client_py, client_run_py, client_testing_py;
