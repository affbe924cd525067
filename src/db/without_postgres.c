/* Instead of all that needs libpq, in a build without it (make SLIM=1): a store is a SQLite file, and anything else is refused. */
#include "db/driver.h"
#include "db/listen.h"
#include "db/store_name.h"

static enum hx_code refuse(struct hx_error *err)
{
	return error_set(err, HX_CONFIG_ERROR,
			 "this program was built without PostgreSQL (SLIM): a store is sqlite:PATH");
}

static enum hx_code open_none(const struct db_options *options, struct db **ret_db, struct hx_error *err)
{
	(void)options;
	(void)ret_db;
	return refuse(err);
}

const struct db_driver db_postgres = {.open = open_none};

enum hx_code listen_open(const struct db_options *options, const char *channel, struct listen **ret_listen,
			 struct hx_error *err)
{
	(void)options;
	(void)channel;
	(void)ret_listen;
	return refuse(err);
}

/* The rest is never asked: there is none that could be. */

void listen_close(struct listen *listen)
{
	(void)listen;
}

enum hx_code listen_connect(struct listen *listen, struct hx_error *err)
{
	(void)listen;
	return refuse(err);
}

int listen_fd(const struct listen *listen)
{
	(void)listen;
	return -1;
}

enum hx_code listen_tell(struct listen *listen, const char *payload, struct hx_error *err)
{
	(void)listen;
	(void)payload;
	return refuse(err);
}

enum hx_code listen_take(struct listen *listen, const char **ret_payload, struct hx_error *err)
{
	(void)listen;
	(void)ret_payload;
	return refuse(err);
}

/* Nothing of another URL is told: it may hold a password. */
const char *store_name(const char *url, char ret_name[STORE_NAME_BYTES])
{
	(void)ret_name;
	return strncmp(url, "sqlite:", 7) == 0 ? url : "a store that is none of this build's";
}
