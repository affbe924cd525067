/*
 * `postgres://…?schema=NAME`: a schema of our own in a database that others use, too. libpq knows no such parameter, so it is
 * taken out of the URL before libpq sees it.
 *
 * A session of such a store has the search path NAME, then what it had before: hx_ names are found in NAME, tables and
 * functions of the user's where they were. Names are plain (letters, digits, '_'), and quoted wherever they are used.
 */
#pragma once

#include "base/error.h"

#define STORE_SCHEMA_BYTES 64 /* PostgreSQL cuts longer names in silence */

/*
 * *ret_url is the URL without the parameter, to be freed; ret_schema its value, "" where it has none. HX_CONFIG_ERROR: the name is not
 * one that we make, or there are two.
 */
enum hx_code store_schema_split(const char *url, char **ret_url, char ret_schema[STORE_SCHEMA_BYTES],
				struct hx_error *err) HX_MUST_CHECK;
