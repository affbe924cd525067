/*
 * Where actions may connect to: `outbound.allow`, judged on the very address that is then connected to.
 *
 * A name proves nothing (its answer changes), nor does a spelling (0x7f.1, 2130706433 and ::ffff:127.0.0.1 are all
 * this machine), so the judge sees neither: it is given the socket address after every resolver is done with it.
 *
 *   the address              the list is empty      the list has entries
 *   public                   allowed                allowed if an entry covers it
 *   loopback                 allowed with the option `loopback`, or if an entry inside of 127.0.0.0/8 or ::1 covers it
 *   any other special range  refused                allowed if an entry that lies inside of that range covers it
 *
 * Special are the private, link-local, shared, multicast, unspecified, documentation and reserved ranges, and all IPv6
 * addresses outside of 2000::/3, which is what has been given out of them. Only an
 * entry that lies inside of such a range opens it: whoever writes 0.0.0.0/0 means the internet, not the metadata
 * service at 169.254.169.254, and says 169.254.0.0/16 if that is meant as well.
 *
 * IPv6 addresses that carry an IPv4 address (mapped ::ffff:0:0/96, compatible ::/96, translated ::ffff:0:0:0/96, NAT64
 * 64:ff9b::/96, 6to4 2002::/16) are judged as that IPv4 address. Where the place of the carried address is not fixed (Teredo, the
 * NAT64 prefixes of one's own network) the range counts as special.
 *
 * Pure: no I/O, no memory but the struct. Immutable once it is filled in, so threads may share it.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#include "base/error.h"
#include "base/slice.h"

#define OUTBOUND_ENTRIES_MAX 256

/* An address in 16 bytes; IPv4 in its mapped form, so that one comparison serves both. */
struct ip_address {
	uint8_t bytes[16];
};

struct cidr {
	struct ip_address base; /* the bits after the prefix are zero */
	unsigned prefix_bits;
};

struct outbound {
	bool loopback;
	size_t entries_n;
	struct cidr entries[OUTBOUND_ENTRIES_MAX];
};

/* Nothing listed: public addresses only, and loopback if it says so. */
void outbound_init(struct outbound *outbound, bool loopback);
/*
 * Adds "10.0.0.0/8", "fd00::/8" or a single address. HX_CONFIG_ERROR for what is none, for bits set after the
 * prefix (10.0.0.1/8 is a mistake of some kind), and for more than OUTBOUND_ENTRIES_MAX entries.
 */
enum hx_code outbound_allow(struct outbound *outbound, struct slice cidr, struct hx_error *err) HX_MUST_CHECK;

/* NULL: go ahead. Otherwise why not, in one or two words ("private", "link-local", "not listed"). */
const char *outbound_refusal(const struct outbound *outbound, const struct sockaddr *to);
