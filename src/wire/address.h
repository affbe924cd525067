/*
 * Where to listen, and who is at the other end: an IPv4 or IPv6 address and a port, in 20 bytes.
 *
 *   127.0.0.1:7411   [::1]:7411   0.0.0.0:0   localhost:7411 (which is 127.0.0.1)
 *
 * Names are not resolved: what a name means can change, and a listener must not move with it.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#include "base/error.h"

#define ADDRESS_TEXT_BYTES 56

struct address {
	uint8_t bytes[16]; /* four of them for IPv4 */
	uint16_t port;
	bool is_ipv6;
};

/* HX_VALIDATION_ERROR says what is wrong with the text. Port 0 is valid: any free one. */
enum hx_code address_parse(const char *text, struct hx_error *err, struct address *ret_address) HX_MUST_CHECK;
/* "127.0.0.1:7411", "[::1]:7411". */
void address_format(const struct address *address, char ret_text[ADDRESS_TEXT_BYTES]);
/* 127.0.0.0/8 or ::1. */
bool address_is_loopback(const struct address *address);

socklen_t address_to_sockaddr(const struct address *address, struct sockaddr_storage *ret_sockaddr);
/* An IPv4 client of an IPv6 listener becomes IPv4. False for another family. */
bool address_from_sockaddr(const struct sockaddr_storage *sockaddr, struct address *ret_address);
