/*
 * Fields in the head of a reply that decide what is made of it: the type of its body, and the time before which the service does
 * not want to be asked again. Pure.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/slice.h"

#define RETRY_AFTER_MS_MAX 3600000 /* more than an hour counts as an hour */

/*
 * A Retry-After, in seconds or as an HTTP-date; that one is counted from the reply's own Date, so that nobody's clock matters, or
 * else (it is empty, or none that can be read) from now_s. In the past: 0. False: it says nothing that can be read.
 */
bool reply_retry_after(struct slice value, struct slice date, int64_t now_s, int64_t *ret_ms);
