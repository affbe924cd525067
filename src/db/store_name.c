/* See store_name.h. Only the parts that are named here get out, so that nothing has to be taken away. */
#include "db/store_name.h"

#include <libpq-fe.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "db/store_schema.h"

static const char *part_of(const PQconninfoOption *parts, const char *keyword)
{
	for (; parts && parts->keyword; parts++)
		if (strcmp(parts->keyword, keyword) == 0 && parts->val && parts->val[0])
			return parts->val;
	return NULL;
}

/* As the URL says, or else the environment. */
static const char *store_name_find(const PQconninfoOption *said, const PQconninfoOption *usual, const char *keyword)
{
	const char *part = part_of(said, keyword);

	return part ? part : part_of(usual, keyword);
}

static void print(const char *host, const char *port, const char *database, char ret_name[STORE_NAME_BYTES])
{
	bool bare = host && strchr(host, ':'); /* an IPv6 address */

	if (!host) /* libpq's own folder of sockets */
		snprintf(ret_name, STORE_NAME_BYTES, "postgres:///%s?port=%s", database, port);
	else if (host[0] == '/' || host[0] == '@')
		snprintf(ret_name, STORE_NAME_BYTES, "postgres:///%s?host=%s&port=%s", database, host, port);
	else
		snprintf(ret_name, STORE_NAME_BYTES, "postgres://%s%s%s:%s/%s", bare ? "[" : "", host, bare ? "]" : "",
			 port, database);
}

static void add_schema(const char *schema, char name[STORE_NAME_BYTES])
{
	size_t n = strlen(name);

	if (schema[0])
		snprintf(name + n, STORE_NAME_BYTES - n, "%cschema=%s", strchr(name, '?') ? '&' : '?', schema);
}

const char *store_name(const char *url, char ret_name[STORE_NAME_BYTES])
{
	PQconninfoOption *said, *usual;
	const char *host, *port, *database, *service;
	char schema[STORE_SCHEMA_BYTES] = "", *plain = NULL;

	if (strncmp(url, "sqlite:", 7) == 0)
		return url;
	if (store_schema_split(url, &plain, schema, /* err= */ NULL) == HX_OK)
		url = plain;
	said = PQconninfoParse(url, /* errmsg= */ NULL);
	usual = PQconndefaults();
	service = part_of(said, "service");
	host = store_name_find(said, usual, "host");
	host = host ? host : store_name_find(said, usual, "hostaddr");
	port = store_name_find(said, usual, "port");
	database = store_name_find(said, usual, "dbname");
	database = database ? database : store_name_find(said, usual, "user");
	if (service) /* libpq reads the rest in a file of its own */
		snprintf(ret_name, STORE_NAME_BYTES, "postgres:///?service=%s", service);
	else
		print(host, port ? port : "", database ? database : "", ret_name);
	PQconninfoFree(said);
	PQconninfoFree(usual);
	free(plain);
	add_schema(schema, ret_name);
	return ret_name;
}
