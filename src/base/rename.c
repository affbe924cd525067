/* See rename.h. */
#include "base/rename.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

bool rename_new(int from_fd, const char *from, int to_fd, const char *to)
{
	struct stat at;

	if (renameat2(from_fd, from, to_fd, to, RENAME_NOREPLACE) == 0)
		return true;
	if (errno != EINVAL && errno != ENOSYS)
		return false;
	if (fstatat(to_fd, to, &at, AT_SYMLINK_NOFOLLOW) == 0) {
		errno = EEXIST;
		return false;
	}
	return renameat(from_fd, from, to_fd, to) == 0;
}
