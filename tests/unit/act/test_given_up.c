/* A call that is given up before its loop has come to it is not sent: its lease may be another's by then. */
#include "act/http.h"
#include "support/await.h"
#include "unit/act/upstream.h"

static const struct page pages[] = {{"/ok", PAGE_REPLY, "HTTP/1.1 200 OK\r\nContent-Length: #\r\n\r\n{}"}, {0}};

static bool is_idle(const struct desk *desk)
{
	struct port_stats stats;

	port_read_stats(desk->port, &stats);
	return stats.running == 0;
}

/* The desk's mutex holds the loop up where it tells of the first call: the second lies in its inbox meanwhile. */
static void test_given_up_in_the_inbox(void **state)
{
	struct upstream u;
	struct desk desk;
	struct action action;
	char url[128];
	uint64_t second;

	(void)state;
	upstream_open(&u, pages);
	desk_open(&desk, &(struct port_options){.http_loops = 1});
	action = upstream_action(&u, "/ok", url);
	pthread_mutex_lock(&desk.mutex);
	desk_start(&desk, &action, (struct act_call){.input = slice_str("{}")});
	AWAIT(30000, is_idle(&desk));
	second = desk_start(&desk, &action, (struct act_call){.input = slice_str("{}")});
	desk_abort(&desk, second);
	pthread_mutex_unlock(&desk.mutex);
	AWAIT(30000, is_idle(&desk));
	desk_close(&desk);
	assert_int_equal(u.applied, 1);
	upstream_close(&u);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_given_up_in_the_inbox)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
