/* Giving a file its name, never over another one. */
#pragma once

#include <stdbool.h>

/*
 * As renameat(2). False with errno; EEXIST: the name is taken, and nothing has changed. Some file systems know no such
 * rename: there it is looked at just before.
 */
bool rename_new(int from_fd, const char *from, int to_fd, const char *to);
