/*
 * A copy of an SQLite store, taken while a server writes to it.
 *
 *   FILE.part-XXXXXX, 0600 ─▶ pages, in slices ─▶ quick_check ─▶ fsync ─▶ named FILE, unless there is one ─▶ fsync of the folder
 *         └─────────── whatever goes wrong: it is deleted ───────────┘
 *
 *  K1  The copy is of one moment: a single read transaction lasts from the first page to the last. The server's commits go on
 *      into its log meanwhile, and make no page be copied twice.
 *  K2  The store is only read. What the reader costs: the server cannot start its log over before it is gone, so that grows by
 *      what is written meanwhile; db/sqlite.c lets it shrink again afterwards.
 *  K3  Under the name FILE there is a whole, checked and synced copy, or what was there before. Only a SIGKILL or a power cut
 *      leaves the .part behind.
 *
 * What the copy has not: the log. It needs none, and must not find one of another store beside it.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

struct backup_options {
	const char *path; /* of the store */
	const char *file; /* of the copy */
	/*
	 * Called between slices, and while the copy is checked (percent is -1 then: nobody knows). False: it gives up, with
	 * HX_STOPPING. NULL: nobody watches.
	 */
	bool (*told)(void *context, int percent);
	void *context;
};

/*
 * HX_ALREADY_EXISTS: there is something of that name, which is left alone. HX_STORE_UNAVAILABLE: the store cannot be read.
 * HX_INTERNAL: the copy cannot be written, or is not whole. HX_STOPPING: `told` said so.
 */
enum hx_code backup_take(const struct backup_options *options, int64_t *ret_bytes, struct hx_error *err) HX_MUST_CHECK;
