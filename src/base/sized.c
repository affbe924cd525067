/* See sized.h. */
#include "base/sized.h"

#include <string.h>

/* No struct of ours will ever have so many: it is a size that nobody has set. */
#define SIZED_BYTES_MAX 65536

enum hx_code sized_read(const void *given, void *ret_own, size_t own_bytes, const char *name, struct hx_error *err)
{
	const unsigned char *bytes = given;
	size_t size;

	if (!given)
		return error_set(err, HX_VALIDATION_ERROR, "there is no struct %s", name);
	memcpy(&size, given, sizeof size);
	if (size < sizeof size || size > SIZED_BYTES_MAX)
		return error_set(err, HX_VALIDATION_ERROR,
				 "the size of a struct %s is not set: begin it with HX_SIZE(%s)", name, name);
	for (size_t i = own_bytes; i < size; i++)
		if (bytes[i])
			return error_set(err, HX_VALIDATION_ERROR,
					 "a struct %s has a member that this version of the library does not know",
					 name);
	memset(ret_own, 0, own_bytes);
	memcpy(ret_own, given, size < own_bytes ? size : own_bytes);
	memcpy(ret_own, &own_bytes, sizeof own_bytes);
	return HX_OK;
}
