/* See bearer.h. */
#include "serve/bearer.h"

#include "wire/charset.h"

static struct slice bearer_value_of(struct wire_fields fields, const char *name, size_t *ret_n)
{
	const struct wire_field *field = wire_find(fields, name, ret_n);

	return field ? field->value : slice_of(NULL, 0);
}

static struct slice after_scheme(struct slice value)
{
	size_t n = strlen("Bearer ");

	if (!slice_starts_nocase(value, "Bearer "))
		return slice_of(NULL, 0);
	while (n < value.n && value.p[n] == ' ')
		n++;
	return slice_from(value, n);
}

bool bearer_key(struct wire_fields fields, struct slice *ret_key)
{
	size_t bearers_n, others_n;
	struct slice by_bearer = after_scheme(bearer_value_of(fields, "Authorization", &bearers_n));
	struct slice by_field = bearer_value_of(fields, "X-API-Key", &others_n);

	*ret_key = by_bearer.n ? by_bearer : by_field;
	return bearers_n <= 1 && others_n <= 1 && (!by_bearer.n || !by_field.n || slice_eq(by_bearer, by_field));
}
