/* See zones.h. */
#include "engine/zones.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/thread.h"

#define BYTES_MAX (32u << 20) /* all of them, at 2 to 4 KiB each, and some that are larger */

void zones_init(struct zones *zones)
{
	pthread_mutex_init(&zones->mutex, NULL);
	arena_init(&zones->arena, BYTES_MAX);
	zones->n = 0;
}

void zones_release(struct zones *zones)
{
	arena_release(&zones->arena);
	pthread_mutex_destroy(&zones->mutex);
}

static size_t read_file(const char *path, char *bytes, size_t max)
{
	FILE *file = fopen(path, "re");
	size_t n = file ? fread(bytes, 1, max, file) : 0;

	if (file)
		fclose(file);
	return n;
}

/* Under the mutex. */
static const struct zone *read_zone(struct zones *zones, struct slice name)
{
	struct zone *zone = arena_alloc(&zones->arena, sizeof *zone);
	char *bytes = malloc(ZONE_BYTES_MAX), path[sizeof ZONES_DIR + 1 + ZONE_NAME_MAX + 1];
	struct slice kept = arena_copy(&zones->arena, name);
	enum hx_code code = HX_NO_MEMORY;

	snprintf(path, sizeof path, "%s/%.*s", ZONES_DIR, SLICE_ARGS(name));
	if (zone && bytes && kept.p)
		code = zone_parse(slice_of(bytes, read_file(path, bytes, ZONE_BYTES_MAX)), &zones->arena,
				  /* err= */ NULL, zone);
	free(bytes);
	if (code)
		return NULL;
	zones->known[zones->n].name = kept.p;
	zones->known[zones->n++].zone = zone;
	return zone;
}

/* What is not there is not remembered: names that people invent take no place. */
const struct zone *zones_find(struct zones *zones, struct slice name)
{
	const struct zone *zone = NULL;
	struct arena_mark mark;

	if (slice_is(name, "UTC"))
		return &zone_utc;
	if (!zone_name_is_good(name))
		return NULL;
	LOCKED(&zones->mutex);
	for (size_t i = 0; i < zones->n && !zone; i++)
		zone = slice_is(name, zones->known[i].name) ? zones->known[i].zone : NULL;
	mark = arena_mark(&zones->arena);
	if (!zone && zones->n < ZONES_MAX)
		zone = read_zone(zones, name);
	if (!zone && !zones->arena.failed)
		arena_rewind(&zones->arena, mark);
	return zone;
}
