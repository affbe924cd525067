/* See out_file.h. */
#include "cli/out_file.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

enum hx_code out_file_write(const char *path, struct slice text, struct hx_error *err)
{
	FILE *file = fopen(path, "w");
	bool written = file && fwrite(text.p, 1, text.n, file) == text.n;

	if (file && fclose(file) != 0)
		written = false;
	if (!written)
		return error_set(err, HX_INTERNAL, "%s cannot be written: %s", path, strerror(errno));
	return HX_OK;
}
