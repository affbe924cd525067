/*
 * The options that say where values stand in a request (source.h): header, key, tenant, caller, scope, fingerprint. A part
 * of policy.c, and for it alone.
 */
#pragma once

#include "gate/policy.h"
#include "model/fields.h"

/* Of a struct gate_policy. */
field_read_fn policy_read_header, policy_read_key, policy_read_tenant, policy_read_caller, policy_read_scope,
	policy_read_fingerprint;
/* What must hold between them. */
void policy_check_sources(const struct reader *r, const struct json_node *object);
/* "scope is 5; it must be …" */
void policy_refuse(const struct reader *r, const struct json_node *node, const char *what, const char *wanted);
