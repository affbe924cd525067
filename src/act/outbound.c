/* See outbound.h. Everything is a prefix of a 16-byte address; the order of the tables decides where ranges nest. */
#include "act/outbound.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>

#include "base/digits.h"
#include "base/excerpt.h"

#define V4_BITS 96 /* what stands in front of an IPv4 address in its mapped form */
#define CIDR_TEXT_MAX (INET6_ADDRSTRLEN + 4)

static const uint8_t mapped_prefix[12] = {[10] = 0xff, [11] = 0xff};

/* clang-format off */
#define V4(a, b, c, d) {{[10] = 0xff, [11] = 0xff, [12] = (a), [13] = (b), [14] = (c), [15] = (d)}}
#define V6(a, b, c, d) {{(a) >> 8, (a) & 0xff, (b) >> 8, (b) & 0xff, (c) >> 8, (c) & 0xff, (d) >> 8, (d) & 0xff}}
/* clang-format on */

/* IPv6 ranges that carry an IPv4 address, and at which byte. */
static const struct {
	struct cidr range;
	unsigned at;
} carriers[] = {
	{{V6(0x0064, 0xff9b, 0, 0), 96}, 12}, /* NAT64 */
	{{V6(0x2002, 0, 0, 0), 16}, 2},       /* 6to4 */
	{{{{[8] = 0xff, [9] = 0xff}}, 96},
	 12},                       /* IPv4-translated, ::ffff:0:0:0/96: what a stateless translator routes */
	{{V6(0, 0, 0, 0), 96}, 12}, /* IPv4-compatible; :: and ::1 are looked at before */
};

static const char loopback_name[] = "loopback";

/* The IANA special-purpose registries. */
static const struct special {
	struct cidr range;
	const char *name;
} specials[] = {
	{{V4(0, 0, 0, 0), 96 + 8}, "unspecified"},
	{{V4(10, 0, 0, 0), 96 + 8}, "private"},
	{{V4(100, 64, 0, 0), 96 + 10}, "shared"},
	{{V4(127, 0, 0, 0), 96 + 8}, loopback_name},
	{{V4(169, 254, 0, 0), 96 + 16}, "link-local"},
	{{V4(172, 16, 0, 0), 96 + 12}, "private"},
	{{V4(192, 0, 0, 0), 96 + 24}, "reserved"},
	{{V4(192, 0, 2, 0), 96 + 24}, "documentation"},
	{{V4(192, 88, 99, 0), 96 + 24}, "reserved"},
	{{V4(192, 168, 0, 0), 96 + 16}, "private"},
	{{V4(198, 18, 0, 0), 96 + 15}, "benchmarking"},
	{{V4(198, 51, 100, 0), 96 + 24}, "documentation"},
	{{V4(203, 0, 113, 0), 96 + 24}, "documentation"},
	{{V4(224, 0, 0, 0), 96 + 4}, "multicast"},
	{{V4(255, 255, 255, 255), 128}, "broadcast"},
	{{V4(240, 0, 0, 0), 96 + 4}, "reserved"},
	{{{{0}}, 128}, "unspecified"},
	{{{{[15] = 1}}, 128}, loopback_name},
	{{V6(0x0064, 0xff9b, 1, 0), 48}, "local NAT64"},
	{{V6(0x0100, 0, 0, 0), 64}, "discard-only"},
	{{V6(0x2001, 0, 0, 0), 32}, "Teredo"},
	{{V6(0x2001, 0x0db8, 0, 0), 32}, "documentation"},
	{{V6(0x2001, 0, 0, 0), 23}, "reserved"},
	{{V6(0x3fff, 0, 0, 0), 20}, "documentation"},
	{{V6(0x5f00, 0, 0, 0), 16}, "reserved"},
	{{V6(0xfc00, 0, 0, 0), 7}, "private"},
	{{V6(0xfe80, 0, 0, 0), 10}, "link-local"},
	{{V6(0xfec0, 0, 0, 0), 10}, "private"},
	{{V6(0xff00, 0, 0, 0), 8}, "multicast"},
};

/* What IANA has given out is 2000::/3. An address outside of it is of some network of its own, if of any. */
static const struct cidr global_unicast = {V6(0x2000, 0, 0, 0), 3};
static const struct special not_global = {{V6(0, 0, 0, 0), 3}, "reserved"};

#define COUNT(array) (sizeof(array) / sizeof *(array))

static bool covers(const struct cidr *range, const struct ip_address *a)
{
	unsigned whole = range->prefix_bits / 8, rest = range->prefix_bits % 8;

	if (memcmp(range->base.bytes, a->bytes, whole) != 0)
		return false;
	return rest == 0 || (range->base.bytes[whole] ^ a->bytes[whole]) >> (8 - rest) == 0;
}

static struct ip_address mapped(const void *v4)
{
	struct ip_address a;

	memcpy(a.bytes, mapped_prefix, sizeof mapped_prefix);
	memcpy(a.bytes + 12, v4, 4);
	return a;
}

static bool is_v4(const struct ip_address *a)
{
	return memcmp(a->bytes, mapped_prefix, sizeof mapped_prefix) == 0;
}

static bool is_v6_itself(const struct ip_address *a)
{
	static const uint8_t zero[15];

	return memcmp(a->bytes, zero, sizeof zero) == 0 && a->bytes[15] <= 1; /* :: and ::1 */
}

/* The address that the packets will reach in the end. */
static struct ip_address effective(struct ip_address a)
{
	if (is_v6_itself(&a))
		return a;
	for (size_t i = 0; i < COUNT(carriers); i++)
		if (covers(&carriers[i].range, &a))
			return mapped(a.bytes + carriers[i].at);
	return a;
}

static const struct special *special_of(const struct ip_address *a)
{
	for (size_t i = 0; i < COUNT(specials); i++)
		if (covers(&specials[i].range, a))
			return &specials[i];
	return is_v4(a) || covers(&global_unicast, a) ? NULL : &not_global;
}

/* An entry and a range that both cover one address nest: the longer prefix lies inside. */
static bool is_listed(const struct outbound *outbound, const struct ip_address *a, unsigned prefix_bits_min)
{
	for (size_t i = 0; i < outbound->entries_n; i++)
		if (outbound->entries[i].prefix_bits >= prefix_bits_min && covers(&outbound->entries[i], a))
			return true;
	return false;
}

static bool address_of(const struct sockaddr *to, struct ip_address *ret)
{
	if (to->sa_family == AF_INET) {
		*ret = mapped(&((const struct sockaddr_in *)(const void *)to)->sin_addr);
		return true;
	}
	if (to->sa_family == AF_INET6) {
		memcpy(ret->bytes, &((const struct sockaddr_in6 *)(const void *)to)->sin6_addr, 16);
		return true;
	}
	return false;
}

const char *outbound_refusal(const struct outbound *outbound, const struct sockaddr *to)
{
	const struct special *special;
	struct ip_address a;

	if (!address_of(to, &a))
		return "not an internet address";
	a = effective(a);
	special = special_of(&a);
	if (special && special->name == loopback_name && outbound->loopback)
		return NULL;
	/* ::/0 lists the IPv6 internet: no IPv4 address is inside of it, although its mapped form would be. */
	if (is_listed(outbound, &a, special ? special->range.prefix_bits : is_v4(&a) ? V4_BITS : 0))
		return NULL;
	if (special)
		return special->name;
	return outbound->entries_n ? "not listed" : NULL;
}

/* ---- reading the list ---- */

void outbound_init(struct outbound *outbound, bool loopback)
{
	outbound->loopback = loopback;
	outbound->entries_n = 0;
}

static bool parse_cidr(char *text, struct cidr *ret)
{
	char *slash = strchr(text, '/');
	unsigned front;
	struct in_addr v4;
	uint64_t bits;

	if (slash)
		*slash = '\0';
	if (inet_pton(AF_INET, text, &v4) == 1) {
		ret->base = mapped(&v4);
		front = V4_BITS;
	} else if (inet_pton(AF_INET6, text, ret->base.bytes) == 1) {
		front = 0;
	} else {
		return false;
	}
	bits = 128 - front;
	if (slash && ((slash[1] == '0' && slash[2]) || !digits_number(slice_str(slash + 1), bits, &bits)))
		return false; /* zeros in front are none of the forms */
	ret->prefix_bits = front + (unsigned)bits;
	return true;
}

static bool has_bits_after_prefix(const struct cidr *cidr)
{
	for (unsigned bit = cidr->prefix_bits; bit < 128; bit++)
		if (cidr->base.bytes[bit / 8] & 0x80 >> bit % 8)
			return true;
	return false;
}

enum hx_code outbound_allow(struct outbound *outbound, struct slice text, struct hx_error *err)
{
	char copy[CIDR_TEXT_MAX + 1];
	struct cidr cidr;

	if (outbound->entries_n == OUTBOUND_ENTRIES_MAX)
		return error_set(err, HX_CONFIG_ERROR, "outbound.allow: more than %d entries", OUTBOUND_ENTRIES_MAX);
	if (text.n <= CIDR_TEXT_MAX && text.n > 0 && !memchr(text.p, '\0', text.n)) {
		memcpy(copy, text.p, text.n);
		copy[text.n] = '\0';
	} else {
		copy[0] = '\0';
	}
	if (!parse_cidr(copy, &cidr))
		return error_set(err, HX_CONFIG_ERROR,
				 "outbound.allow: %s is neither an address nor a range like 10.0.0.0/8",
				 excerpt_of(text).text);
	if (has_bits_after_prefix(&cidr))
		return error_set(err, HX_CONFIG_ERROR, "outbound.allow: %s has bits set after its prefix",
				 excerpt_of(text).text);
	outbound->entries[outbound->entries_n++] = cidr;
	return HX_OK;
}
