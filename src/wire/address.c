/* See address.h. */
#include "wire/address.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>

#include "base/digits.h"
#include "base/excerpt.h"

static bool parse_port(const char *text, uint16_t *ret_port)
{
	uint64_t value = 0;
	bool good = strlen(text) <= 5 && digits_number(slice_str(text), UINT16_MAX, &value);

	*ret_port = (uint16_t)value;
	return good;
}

static bool parse_host(const char *text, size_t n, struct address *address)
{
	char host[INET6_ADDRSTRLEN];

	address->is_ipv6 = n > 2 && text[0] == '[' && text[n - 1] == ']';
	if (address->is_ipv6) {
		text++;
		n -= 2;
	}
	if (n >= sizeof host)
		return false;
	memcpy(host, text, n);
	host[n] = '\0';
	if (!address->is_ipv6 && strcmp(host, "localhost") == 0)
		return inet_pton(AF_INET, "127.0.0.1", address->bytes) == 1;
	return inet_pton(address->is_ipv6 ? AF_INET6 : AF_INET, host, address->bytes) == 1;
}

enum hx_code address_parse(const char *text, struct hx_error *err, struct address *ret_address)
{
	const char *colon = strrchr(text, ':');
	struct address address = {0};

	if (!colon || !parse_port(colon + 1, &address.port) || !parse_host(text, (size_t)(colon - text), &address))
		return error_set(err, HX_VALIDATION_ERROR,
				 "\"%s\" is not an address and a port, as in 127.0.0.1:7411 or [::1]:7411",
				 excerpt_of(slice_str(text)).text);
	*ret_address = address;
	return HX_OK;
}

void address_format(const struct address *address, char ret_text[ADDRESS_TEXT_BYTES])
{
	char host[INET6_ADDRSTRLEN] = "?";

	inet_ntop(address->is_ipv6 ? AF_INET6 : AF_INET, address->bytes, host, sizeof host);
	snprintf(ret_text, ADDRESS_TEXT_BYTES, address->is_ipv6 ? "[%s]:%u" : "%s:%u", host, address->port);
}

bool address_is_loopback(const struct address *address)
{
	if (!address->is_ipv6)
		return address->bytes[0] == 127;
	return memcmp(address->bytes, &in6addr_loopback, 16) == 0;
}

socklen_t address_to_sockaddr(const struct address *address, struct sockaddr_storage *ret_sockaddr)
{
	memset(ret_sockaddr, 0, sizeof *ret_sockaddr);
	if (address->is_ipv6) {
		struct sockaddr_in6 in6 = {.sin6_family = AF_INET6, .sin6_port = htons(address->port)};

		memcpy(&in6.sin6_addr, address->bytes, 16);
		memcpy(ret_sockaddr, &in6, sizeof in6);
		return sizeof in6;
	}

	struct sockaddr_in in = {.sin_family = AF_INET, .sin_port = htons(address->port)};

	memcpy(&in.sin_addr, address->bytes, 4);
	memcpy(ret_sockaddr, &in, sizeof in);
	return sizeof in;
}

static void from_ipv6(const struct sockaddr_in6 *in6, struct address *address)
{
	address->port = ntohs(in6->sin6_port);
	address->is_ipv6 = !IN6_IS_ADDR_V4MAPPED(&in6->sin6_addr);
	if (address->is_ipv6)
		memcpy(address->bytes, &in6->sin6_addr, 16);
	else
		memcpy(address->bytes, in6->sin6_addr.s6_addr + 12, 4);
}

bool address_from_sockaddr(const struct sockaddr_storage *sockaddr, struct address *ret_address)
{
	struct address address = {0};
	struct sockaddr_in6 in6;
	struct sockaddr_in in;

	if (sockaddr->ss_family == AF_INET) {
		memcpy(&in, sockaddr, sizeof in);
		memcpy(address.bytes, &in.sin_addr, 4);
		address.port = ntohs(in.sin_port);
	} else if (sockaddr->ss_family == AF_INET6) {
		memcpy(&in6, sockaddr, sizeof in6);
		from_ipv6(&in6, &address);
	} else {
		return false;
	}
	*ret_address = address;
	return true;
}
