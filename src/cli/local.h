/*
 * What the verbs do that need no server, one function for each row of verbs_local.c: a `make` writes its result as JSON, a `run` does
 * everything itself. The files are named as the verbs are.
 */
#pragma once

#include "base/arena.h"
#include "base/strbuf.h"
#include "cli/command.h"

/* clang-format off */
#define LOCAL_RUN(name) enum hx_code name(const struct command_args *args, struct hx_error *err) HX_MUST_CHECK
#define LOCAL_MAKE(name) \
	enum hx_code name(const struct command_args *args, struct strbuf *out, struct hx_error *err) HX_MUST_CHECK
/* clang-format on */

LOCAL_RUN(serve_run);
LOCAL_RUN(dev_run);
LOCAL_RUN(gate_run);
LOCAL_RUN(dashboard_run);
LOCAL_RUN(init_run);
LOCAL_RUN(check_run);
LOCAL_RUN(graph_run);
LOCAL_RUN(explore_run);
LOCAL_RUN(test_run);
LOCAL_RUN(completion_run);
LOCAL_MAKE(audit_make);
LOCAL_MAKE(backup_make);
LOCAL_MAKE(db_status_make);
LOCAL_MAKE(db_migrate_make);
LOCAL_MAKE(db_raise_fences_make);
LOCAL_MAKE(key_create_make);
LOCAL_MAKE(key_list_make);
LOCAL_MAKE(key_revoke_make);

/* explore.c: a line about the way to break them that is found at once; nothing where there is none, or they are many. */
struct definition_set;
void explore_hint(const struct definition_set *set, struct arena *arena, struct strbuf *out);
