/* Instead of all that needs hiredis, in a build without it (make SLIM=1): stores in Redis are refused. */
#include "gate/entry_store.h"
#include "gate/store.h"

#pragma GCC diagnostic ignored "-Wunused-parameter" /* there is nothing to be done with any of them */

static enum hx_code without_redis_refuse(struct hx_error *err)
{
	return error_set(err, HX_CONFIG_ERROR, "this program was built without Redis (SLIM)");
}

enum hx_code entry_redis_new(const struct redis_url *url, size_t queue_max, struct clock *clock,
			     struct entry_locks **ret_locks, struct hx_error *err)
{
	return without_redis_refuse(err);
}

enum hx_code gate_redis_new(const char *url, struct clock *clock, struct gate_store **ret_store, bool *ret_durable,
			    struct hx_error *err)
{
	return without_redis_refuse(err);
}
