/*
 * The file of an SQLite store: made for its owner alone, and locked by one server at a time.
 *
 *  F1  A file that we make is 0600; SQLite gives its log and its index the same mode. One that is there keeps its own.
 *  F2  A server holds two locks. PATH.lock (flock) tells a second server at once, and people can see it. It can be deleted,
 *      and a hard link has another one; so the file itself is locked, too, whatever name it was found by.
 *  F3  SQLite's own locks on the file are the process's: closing any descriptor of it drops them all. Ours is therefore an
 *      open file description's (F_OFD_SETLK), on a byte that SQLite never touches, and its descriptor stays open for as long
 *      as the file has a name; who locks the file again in this process gets the same one.
 */
#pragma once

#include "base/error.h"

struct sqlite_lock {
	int beside;                 /* PATH.lock; -1: not held */
	struct sqlite_held *inside; /* NULL: not held */
};

#define SQLITE_NOT_LOCKED ((struct sqlite_lock){.beside = -1})

/* HX_BUSY: another server has the store. What was taken by then is released by sqlite_unlock(). */
enum hx_code sqlite_lock(const char *path, struct sqlite_lock *lock, struct hx_error *err) HX_MUST_CHECK;
/* After the last connection was closed. */
void sqlite_unlock(struct sqlite_lock *lock);
/* F1, for those who take no lock. What cannot be made is left for SQLite to tell. */
void sqlite_make_private(const char *path);
