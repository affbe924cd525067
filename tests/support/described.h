/*
 * Every answer that a test's client gets from the API must be one that the table of routes declares for it (api/openapi.h): a
 * status of success, or a code that this route can answer. So whatever test brings about an answer that is not described finds
 * out, and the description is as true as all tests together can tell.
 */
#ifndef HX_TESTS_SUPPORT_DESCRIBED_H
#define HX_TESTS_SUPPORT_DESCRIBED_H

/*
 * From any thread: an answer that is not described ends the program, and says which. Other paths than the API's are nobody's
 * business here; nor is what is refused before it comes to a route. code: of a problem, else empty.
 */
void described_check(const char *method, const char *path, int status, const char *code);

#endif
