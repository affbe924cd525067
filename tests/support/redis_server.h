/* The private Redis of tests/with-redis, which make test starts. */
#ifndef HX_TESTS_SUPPORT_REDIS_SERVER_H
#define HX_TESTS_SUPPORT_REDIS_SERVER_H

/* Its address, HAPAX_TEST_REDIS. Fails the test where there is none. */
const char *redis_server_url(void);
/* start, stop, pause … : what its control script understands. */
void redis_ctl(const char *what);

#endif
