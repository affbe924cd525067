/* See hook_signature.h. */
#include "api/hook_signature.h"

#include "base/digits.h"
#include "base/hmac.h"

#define STANDARD_FRONT "whsec_"
#define SIGNATURES_MAX 16 /* of one delivery */
#define TIME_DIGITS_MAX 12

static const char no_signature[] = "the signature is missing, or of another form than its scheme has";
static const char other_signature[] = "the signature fits none of the secrets";
static const char other_time[] = "it was signed too long ago, or is of the future";

/* One alone: of two, nobody knows which is meant. .p NULL: none. */
static struct slice hook_signature_field_of(struct wire_fields fields, const char *name)
{
	size_t n;
	const struct wire_field *field = wire_find(fields, name, &n);

	return field && n == 1 ? field->value : slice_of(NULL, 0);
}

static const char *header_of(const struct hook_config *hook)
{
	switch (hook->scheme) {
	case HOOK_STRIPE:
		return "Stripe-Signature";
	case HOOK_GITHUB:
		return "X-Hub-Signature-256";
	case HOOK_STANDARD:
		return "webhook-signature";
	case HOOK_HMAC:
		break;
	}
	return hook->header ? hook->header : "X-Signature";
}

bool hook_has_signature(const struct hook_config *hook, struct wire_fields fields)
{
	bool timed = hook->scheme != HOOK_STANDARD || (hook_signature_field_of(fields, "webhook-id").n &&
						       hook_signature_field_of(fields, "webhook-timestamp").n);

	return timed && hook_signature_field_of(fields, header_of(hook)).n > 0;
}

/* ---- texts as bytes ---- */

static int base64_digit(char c)
{
	return c >= 'A' && c <= 'Z'   ? c - 'A'
	       : c >= 'a' && c <= 'z' ? c - 'a' + 26
	       : c >= '0' && c <= '9' ? c - '0' + 52
	       : c == '+'             ? 62
	       : c == '/'             ? 63
				      : -1;
}

/* With its padding. */
static bool read_base64(struct slice text, struct strbuf *ret)
{
	uint32_t bits = 0;
	size_t n = text.n;

	if (n == 0 || n % 4)
		return false;
	for (int i = 0; i < 2 && text.p[n - 1] == '='; i++)
		n--;
	for (size_t i = 0; i < n; i++) {
		int digit = base64_digit(text.p[i]);

		if (digit < 0)
			return false;
		bits = bits << 6 | (uint32_t)digit;
		if (i % 4)
			strbuf_add_char(ret, (char)(bits >> (6 - 2 * (i % 4)) & 0xff));
	}
	return !ret->failed;
}

static bool read_mac(struct slice text, uint8_t ret[SHA256_BYTES])
{
	LOCAL_STRBUF(bytes, 2 * SHA256_BYTES);
	if (hex_read(text, SHA256_BYTES, ret))
		return true;
	if (!read_base64(text, &bytes) || bytes.n != SHA256_BYTES)
		return false;
	memcpy(ret, bytes.p, SHA256_BYTES);
	return true;
}

static bool starts(struct slice *text, const char *front)
{
	size_t n = strlen(front);

	if (text->n < n || memcmp(text->p, front, n) != 0)
		return false;
	*text = slice_of(text->p + n, text->n - n);
	return true;
}

enum hx_code hook_key_of(const struct hook_config *hook, struct slice secret, struct strbuf *ret, struct hx_error *err)
{
	if (secret.n == 0)
		return error_set(err, HX_CONFIG_ERROR, "a secret is empty");
	if (hook->scheme != HOOK_STANDARD) {
		strbuf_add_slice(ret, secret);
		return HX_OK;
	}
	(void)starts(&secret, STANDARD_FRONT); /* or it is without */
	if (read_base64(secret, ret) && ret->n)
		return HX_OK;
	return error_set(err, HX_CONFIG_ERROR, "a secret of standard-webhooks is " STANDARD_FRONT " and base64");
}

/* ---- comparing ---- */

/* What was signed, and the signatures that came with it. */
struct signed_text {
	size_t parts_n;
	struct slice parts[HMAC_PARTS_MAX];
	size_t macs_n;
	uint8_t macs[SIGNATURES_MAX][SHA256_BYTES];
};

static void add_mac(struct signed_text *s, struct slice text)
{
	if (s->macs_n < SIGNATURES_MAX && read_mac(text, s->macs[s->macs_n]))
		s->macs_n++;
}

/* All are compared: how many there are is known to whoever sends them. */
static bool hook_signature_fits(const struct hook_keys *keys, const struct signed_text *s)
{
	uint8_t mac[SHA256_BYTES];
	bool fits = false;

	for (size_t i = 0; i < keys->n; i++) {
		hmac_sha256(keys->at[i], s->parts, s->parts_n, mac);
		for (size_t k = 0; k < s->macs_n; k++) {
			bool same = bytes_equal_slowly(mac, s->macs[k], sizeof mac);

			fits |= same; /* mutant: hook-any-signature -> fits |= same || true; */
		}
	}
	return fits;
}

/* Seconds since 1970, in digits alone. */
static bool is_in_window(struct slice time, int64_t window_ms, struct wall_time now)
{
	int64_t seconds = 0, apart_ms;

	if (time.n == 0 || time.n > TIME_DIGITS_MAX)
		return false;
	for (size_t i = 0; i < time.n; i++) {
		if (time.p[i] < '0' || time.p[i] > '9')
			return false;
		seconds = seconds * 10 + (time.p[i] - '0');
	}
	apart_ms = now.ms - seconds * 1000;
	return (apart_ms < 0 ? -apart_ms : apart_ms) <= window_ms;
}

/* The next of a list that is cut by this; false: there is none. */
static bool hook_signature_next_of(struct slice *rest, char cut, struct slice *ret)
{
	const char *end;

	while (rest->n && (rest->p[0] == ' ' || rest->p[0] == cut))
		*rest = slice_of(rest->p + 1, rest->n - 1);
	if (!rest->n)
		return false;
	end = memchr(rest->p, cut, rest->n);
	*ret = slice_of(rest->p, end ? (size_t)(end - rest->p) : rest->n);
	*rest = slice_of(rest->p + ret->n, rest->n - ret->n);
	return true;
}

/* ---- the schemes ---- */

/* The time that is signed; .p NULL: none is there. */
static struct slice take_stripe(struct slice header, struct slice body, struct signed_text *s)
{
	struct slice time = {NULL, 0}, item;

	while (hook_signature_next_of(&header, ',', &item)) {
		if (starts(&item, "t="))
			time = item;
		else if (starts(&item, "v1="))
			add_mac(s, item);
	}
	s->parts[0] = time;
	s->parts[1] = slice_str(".");
	s->parts[2] = body;
	s->parts_n = 3;
	return time;
}

static struct slice take_standard(struct slice header, struct wire_fields fields, struct slice body,
				  struct signed_text *s)
{
	struct slice item;

	while (hook_signature_next_of(&header, ' ', &item))
		if (starts(&item, "v1,"))
			add_mac(s, item);
	s->parts[0] = hook_signature_field_of(fields, "webhook-id");
	s->parts[1] = slice_str(".");
	s->parts[2] = hook_signature_field_of(fields, "webhook-timestamp");
	s->parts[3] = slice_str(".");
	s->parts[4] = body;
	s->parts_n = 5;
	return s->parts[2];
}

static void take_plain(struct slice header, bool bare, struct slice body, struct signed_text *s)
{
	if (starts(&header, "sha256=") || bare)
		add_mac(s, header);
	s->parts[0] = body;
	s->parts_n = 1;
}

const char *hook_check_signature(const struct hook_config *hook, const struct hook_keys *keys,
				 struct wire_fields fields, struct slice body, struct wall_time now)
{
	struct slice header = hook_signature_field_of(fields, header_of(hook)), time = {NULL, 0};
	struct signed_text s = {0};
	bool timed = hook->scheme == HOOK_STRIPE || hook->scheme == HOOK_STANDARD, timely;

	if (!hook_has_signature(hook, fields))
		return no_signature;
	if (hook->scheme == HOOK_STRIPE)
		time = take_stripe(header, body, &s);
	else if (hook->scheme == HOOK_STANDARD)
		time = take_standard(header, fields, body, &s);
	else
		take_plain(header, hook->scheme == HOOK_HMAC, body, &s);
	if (s.macs_n == 0 || (timed && !time.n))
		return no_signature;
	if (!hook_signature_fits(keys, &s))
		return other_signature;
	timely = !timed;
	timely |= is_in_window(time, hook->window_ms, now); /* mutant: hook-any-time -> timely |= !!is_in_window; */
	if (!timely)
		return other_time;
	return NULL;
}
