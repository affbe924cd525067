/*
 * Time zones of the system's tzdata, by name (model/zone.h). A file is read when its zone is first asked for, and then kept for the life of
 * the process, at most ZONES_MAX of them: newer tzdata counts from the next start on.
 */
#pragma once

#include <pthread.h>

#include "model/zone.h"

#define ZONES_MAX 700 /* there are about 600 names */
#define ZONES_DIR "/usr/share/zoneinfo"

struct zones {
	pthread_mutex_t mutex;
	struct arena arena;
	size_t n;
	struct {
		const char *name;
		const struct zone *zone;
	} known[ZONES_MAX];
};

void zones_init(struct zones *zones);
void zones_release(struct zones *zones);
/* From any thread. NULL: there is none of this name. It lives as long as the zones. */
const struct zone *zones_find(struct zones *zones, struct slice name);
