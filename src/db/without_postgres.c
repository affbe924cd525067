/* Instead of all that needs libpq, in a build without it (make SLIM=1): a store is a SQLite file, and anything else is refused. */
#include "db/driver.h"
#include "db/listen.h"
#include "db/store_name.h"

static enum hx_code without_postgres_refuse(struct hx_error *err)
{
	return error_set(err, HX_CONFIG_ERROR,
			 "this program was built without PostgreSQL (SLIM): a store is sqlite:PATH");
}

static enum hx_code open_none(const struct db_options *options UNUSED, struct db **ret_db UNUSED, struct hx_error *err)
{
	return without_postgres_refuse(err);
}

const struct db_driver db_postgres = {.open = open_none};

enum hx_code listen_open(const struct db_options *options UNUSED, const char *channel UNUSED,
			 struct listen **ret_listen UNUSED, struct hx_error *err)
{
	return without_postgres_refuse(err);
}

/* The rest is never asked: there is none that could be. */

void listen_close(struct listen *listen UNUSED)
{
}

enum hx_code listen_connect(struct listen *listen UNUSED, struct hx_error *err)
{
	return without_postgres_refuse(err);
}

int listen_fd(const struct listen *listen UNUSED)
{
	return -1;
}

enum hx_code listen_tell(struct listen *listen UNUSED, const char *payload UNUSED, struct hx_error *err)
{
	return without_postgres_refuse(err);
}

enum hx_code listen_take(struct listen *listen UNUSED, const char **ret_payload UNUSED, struct hx_error *err)
{
	return without_postgres_refuse(err);
}

/* Nothing of another URL is told: it may hold a password. */
const char *store_name(const char *url, char ret_name[STORE_NAME_BYTES] UNUSED)
{
	return strncmp(url, "sqlite:", 7) == 0 ? url : "a store that is none of this build's";
}
