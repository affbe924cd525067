/*
 * Carries an audit out (flow/audit.h): opens the store to read it, also beside running servers, and runs one short transaction
 * after the other. On PostgreSQL each is REPEATABLE READ, as all of a connection that only reads are: it sees one moment. On
 * SQLite any transaction does, and a short one keeps no server from putting its log away.
 */
#pragma once

#include "db/driver.h"
#include "flow/audit.h"

struct audit_options {
	const char *url;
	/* Called after each slice, in the same thread; NULL: nobody watches. */
	void (*told)(void *context, const struct auditor *auditor);
	void *context;
};

/*
 * HX_OK: the audit came to an end, and the auditor says how (auditor->finding.there). It is init'ed here and released by the
 * caller, in any case. HX_SCHEMA_MISMATCH, HX_STORE_UNAVAILABLE, HX_CONFIG_ERROR: it could not be carried out.
 */
enum hx_code audit_store(const struct audit_options *options, struct auditor *ret_auditor,
			 struct hx_error *err) HX_MUST_CHECK;
