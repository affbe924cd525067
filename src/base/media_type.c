/* See media_type.h. */
#include "base/media_type.h"

bool media_type_is_json(struct slice content_type)
{
	struct slice type = slice_trim(slice_cut(&content_type, ';'));

	return slice_is_nocase(type, "application/json") || slice_is_nocase(type, "text/json") ||
	       (type.n > 5 && slice_is_nocase(slice_from(type, type.n - 5), "+json") && memchr(type.p, '/', type.n));
}
