/* How a store is called in what is printed and logged: where it is, never who opens it, and no password. */
#pragma once

#define STORE_NAME_BYTES 512

/*
 * The URL itself of SQLite; of PostgreSQL its host, port and database, as libpq finds them in the URL and in the environment, and its schema (store_schema.h). For a
 * URL that could be opened: those in which a password has run into the host are refused there. The answer is the URL or ret_name.
 */
const char *store_name(const char *url, char ret_name[STORE_NAME_BYTES]);
