/* See hooks.h. */
#include "api/hooks.h"

#include <string.h>

#include "act/secret.h"

#define SECRET_TEXT_BYTES_MAX (SECRET_BYTES_MAX + HOOK_TEXT_BYTES_MAX)
#define ARENA_BYTES_MAX (64u << 20)

static void wipe(struct strbuf *text)
{
	if (text->capacity)
		explicit_bzero(text->p, text->capacity);
	strbuf_release(text);
}

static enum hx_code hooks_add_key(struct hooks *hooks, struct hook *hook, const char *secret, struct hx_error *err)
{
	struct secrets secrets;
	struct strbuf filled, key;
	struct hx_error why;
	enum hx_code code;

	secrets_init(&secrets);
	strbuf_init(&filled, SECRET_TEXT_BYTES_MAX);
	strbuf_init(&key, SECRET_TEXT_BYTES_MAX);
	code = secrets_fill(&secrets, secret, &filled, &why);
	if (!code)
		code = hook_key_of(hook->config, strbuf_slice(&filled), &key, &why);
	if (!code)
		hook->keys.at[hook->keys.n++] = arena_copy(&hooks->arena, strbuf_slice(&key));
	else
		(void)error_set(err, code, "hooks.%s: verify.secrets: %s", hook->config->name, why.detail);
	wipe(&filled);
	wipe(&key);
	secrets_release(&secrets);
	return code;
}

enum hx_code hooks_init(struct hooks *hooks, const struct config *config, struct hx_error *err)
{
	enum hx_code code = HX_OK;

	arena_init(&hooks->arena, ARENA_BYTES_MAX);
	hooks->list = arena_zalloc(&hooks->arena, (config->hooks_n + 1) * sizeof *hooks->list);
	for (size_t i = 0; hooks->list && i < config->hooks_n && !code; i++) {
		struct hook *hook = &hooks->list[hooks->n++];

		hook->config = &config->hooks[i];
		for (size_t k = 0; k < hook->config->secrets_n && !code; k++)
			code = hooks_add_key(hooks, hook, hook->config->secrets[k], err);
	}
	if (!code && hooks->arena.failed)
		code = error_set(err, HX_NO_MEMORY, "the hooks");
	return code;
}

void hooks_release(struct hooks *hooks)
{
	arena_release(&hooks->arena);
	*hooks = (struct hooks){0};
}

const struct hook *hooks_find(const struct hooks *hooks, struct slice name)
{
	for (size_t i = 0; hooks && i < hooks->n; i++)
		if (slice_is(name, hooks->list[i].config->name))
			return &hooks->list[i];
	return NULL;
}
