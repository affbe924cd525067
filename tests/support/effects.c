/* See effects.h. */
#include "support/effects.h"

#include <pthread.h>
#include <search.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FENCES_MAX 100 /* of one key; a run that was lost more often is not worth the count */

struct effect {
	char key[SERVICE_ID_BYTES]; /* first: it is what the tree compares */
	uint64_t receipt;
	size_t fences_n;
	int64_t fences[FENCES_MAX];
};

struct effects {
	pthread_mutex_t mutex;
	void *tree; /* of struct effect, by key (tsearch) */
	size_t n, repeated;
	char wrong[400]; /* empty: nothing */
};

static int compare(const void *a, const void *b)
{
	return strcmp(a, b);
}

struct effects *effects_new(void)
{
	struct effects *effects = calloc(1, sizeof *effects);

	pthread_mutex_init(&effects->mutex, NULL);
	return effects;
}

void effects_free(struct effects *effects)
{
	if (!effects)
		return;
	tdestroy(effects->tree, free);
	pthread_mutex_destroy(&effects->mutex);
	free(effects);
}

static struct effect *find_or_add(struct effects *effects, const char *key)
{
	struct effect **at = tfind(key, &effects->tree, compare), *effect;

	if (at)
		return *at;
	effect = calloc(1, sizeof *effect);
	snprintf(effect->key, sizeof effect->key, "%s", key);
	effect->receipt = ++effects->n;
	tsearch(effect, &effects->tree, compare);
	return effect;
}

/* One holder, one call. */
static void note_fence(struct effects *effects, struct effect *effect, const struct service_call *call)
{
	for (size_t i = 0; i < effect->fences_n; i++)
		if (effect->fences[i] == call->fence && !effects->wrong[0])
			snprintf(effects->wrong, sizeof effects->wrong, "%s was called twice under the fence %lld",
				 call->key, (long long)call->fence);
	if (effect->fences_n < FENCES_MAX)
		effect->fences[effect->fences_n++] = call->fence;
}

uint64_t effects_apply(void *context, const struct service_call *call)
{
	struct effects *effects = context;
	struct effect *effect;
	uint64_t receipt;

	pthread_mutex_lock(&effects->mutex);
	if ((!call->key[0] || !call->fence) && !effects->wrong[0])
		snprintf(effects->wrong, sizeof effects->wrong, "%s was called without a key, or without a fence",
			 call->path);
	effect = find_or_add(effects, call->key);
	effects->repeated += effect->fences_n > 0;
	note_fence(effects, effect, call);
	receipt = effect->receipt;
	pthread_mutex_unlock(&effects->mutex);
	return receipt;
}

size_t effects_n(struct effects *effects)
{
	size_t n;

	pthread_mutex_lock(&effects->mutex);
	n = effects->n;
	pthread_mutex_unlock(&effects->mutex);
	return n;
}

size_t effects_repeated(struct effects *effects)
{
	size_t n;

	pthread_mutex_lock(&effects->mutex);
	n = effects->repeated;
	pthread_mutex_unlock(&effects->mutex);
	return n;
}

uint64_t effects_receipt(struct effects *effects, const char *key)
{
	struct effect **at;
	uint64_t receipt;

	pthread_mutex_lock(&effects->mutex);
	at = tfind(key, &effects->tree, compare);
	receipt = at ? (*at)->receipt : 0;
	pthread_mutex_unlock(&effects->mutex);
	return receipt;
}

const char *effects_wrong(struct effects *effects)
{
	const char *wrong;

	pthread_mutex_lock(&effects->mutex);
	wrong = effects->wrong[0] ? effects->wrong : NULL; /* the first one stays */
	pthread_mutex_unlock(&effects->mutex);
	return wrong;
}
