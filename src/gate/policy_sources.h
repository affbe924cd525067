/*
 * The options that say where values stand in a request (source.h): header, key, tenant, caller, scope, fingerprint. A part
 * of policy.c, and for it alone.
 */
#ifndef HX_GATE_POLICY_SOURCES_H
#define HX_GATE_POLICY_SOURCES_H

#include "gate/policy.h"
#include "model/reader.h"

void policy_read_sources(const struct reader *r, const struct json_node *object, struct gate_policy *p);
/* "scope is 5; it must be …" */
void policy_refuse(const struct reader *r, const struct json_node *node, const char *what, const char *wanted);

#endif
