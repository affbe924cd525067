/* The numbers of nodes: who has one keeps it. See guards.h. */
#include "unit/flow/guards.h"

#include "flow/node_lease.h"

#define TOKEN 9
#define NODE(until)                                                                                                    \
	"INSERT INTO hx_node (number, name, token, started_at, until) VALUES (5, 'here', 9, 900000, " until ")"

static void take(struct unit *unit, const struct stamp *stamp)
{
	node_take(unit, 5, "there", /* token= */ 10, stamp->at.ms);
}

static void renew(struct unit *unit, const struct stamp *stamp)
{
	(void)stamp;
	node_renew(unit, 5, TOKEN, "here");
}

static void leave(struct unit *unit, const struct stamp *stamp)
{
	(void)stamp;
	node_leave(unit, 5, TOKEN);
}

static const struct guard guards[] = {
	{"node-take-until", NODE("1000000"), "UPDATE hx_node SET until = 1000001", take, NULL},
	{"node-renew-token", NODE("1000500"), "UPDATE hx_node SET token = 11", renew, NULL},
	{"node-leave-token", NODE("1000500"), "UPDATE hx_node SET token = 11", leave,
	 "SELECT 1 FROM hx_node WHERE until <> 1000500"},
};

int main(int argc, char **argv)
{
	return guards_main(guards, sizeof guards / sizeof *guards, argc, argv);
}
