/* See gate_asker.h. */
#include "support/gate_asker.h"

#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdlib.h>

#include <cmocka.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER; /* guards what done() writes */
static pthread_cond_t news = PTHREAD_COND_INITIALIZER;
static _Atomic unsigned tokens;

static void new_token(struct hx_gate_claim *claim)
{
	unsigned number = atomic_fetch_add(&tokens, 1);
	uint8_t digest[SHA256_BYTES];

	sha256(&number, sizeof number, digest);
	memcpy(claim->token, digest, sizeof claim->token);
}

struct hx_gate_claim claim_of(unsigned key, unsigned fingerprint, int64_t lease_ms, int64_t ttl_ms)
{
	struct hx_gate_claim claim = {.lease_ms = lease_ms, .ttl_ms = ttl_ms};

	sha256(&key, sizeof key, claim.key);
	sha256(&fingerprint, sizeof fingerprint, claim.fingerprint);
	new_token(&claim);
	return claim;
}

struct hx_gate_claim claim_by_another(const struct hx_gate_claim *claim)
{
	struct hx_gate_claim another = *claim;

	new_token(&another);
	return another;
}

struct gate_ask ask_of(enum gate_op op, const struct hx_gate_claim *claim)
{
	return (struct gate_ask){
		.op = op, .claim = *claim, .key_text = slice_str("key"), .endpoint = slice_str("POST /payments")};
}

static void note(struct gate_ticket *ticket)
{
	struct question *question = (struct question *)ticket;
	struct slice response = ticket->reply.response;

	pthread_mutex_lock(&mutex);
	question->heard.reply = ticket->reply;
	question->heard.reply.response = slice_of(NULL, 0);
	question->heard.response_bytes = response.n;
	sha256(response.p, response.n, question->heard.response_digest);
	question->answered = true;
	pthread_cond_broadcast(&news);
	pthread_mutex_unlock(&mutex);
}

void question_send(struct question *question, struct gate_store *store, const struct gate_ask *ask)
{
	memset(question, 0, sizeof *question);
	question->ticket.ask = *ask;
	question->ticket.done = note;
	gate_ask(store, &question->ticket);
}

bool question_is_answered(struct question *question)
{
	bool answered;

	pthread_mutex_lock(&mutex);
	answered = question->answered;
	pthread_mutex_unlock(&mutex);
	return answered;
}

const struct heard *question_await(struct question *question)
{
	struct timespec deadline;
	int rc = 0;

	clock_gettime(CLOCK_REALTIME, &deadline);
	deadline.tv_sec += ASKER_AWAIT_MS / 1000;
	pthread_mutex_lock(&mutex);
	while (!question->answered && rc != ETIMEDOUT)
		rc = pthread_cond_timedwait(&news, &mutex, &deadline);
	pthread_mutex_unlock(&mutex);
	if (rc == ETIMEDOUT)
		fail_msg("the store has not answered within %d ms", ASKER_AWAIT_MS);
	return &question->heard;
}

enum gate_verdict hear(struct gate_store *store, const struct gate_ask *ask, struct heard *ret_heard)
{
	struct question *question = malloc(sizeof *question); /* lost with the test if there is no answer */
	enum gate_verdict verdict;

	assert_non_null(question);
	question_send(question, store, ask);
	verdict = question_await(question)->reply.verdict;
	if (ret_heard)
		*ret_heard = question->heard;
	free(question);
	return verdict;
}

enum gate_verdict hear_acquire(struct gate_store *store, const struct hx_gate_claim *claim, struct heard *ret_heard)
{
	struct gate_ask ask = ask_of(GATE_ACQUIRE, claim);

	return hear(store, &ask, ret_heard);
}

enum gate_verdict hear_complete(struct gate_store *store, const struct hx_gate_claim *claim, struct slice response)
{
	struct gate_ask ask = ask_of(GATE_COMPLETE, claim);

	ask.response = response;
	return hear(store, &ask, /* ret_heard= */ NULL);
}

enum gate_verdict hear_remove(struct gate_store *store, const struct hx_gate_claim *claim)
{
	struct gate_ask ask = ask_of(GATE_REMOVE, claim);

	return hear(store, &ask, /* ret_heard= */ NULL);
}

int64_t hear_sweep(struct gate_store *store, int64_t budget, int64_t turn_ms)
{
	struct gate_ask ask = {.op = GATE_SWEEP, .budget = budget, .turn_ms = turn_ms};
	struct heard heard;

	assert_int_equal(hear(store, &ask, &heard), GATE_DONE);
	return heard.reply.removed;
}

bool heard_is(const struct heard *heard, struct slice response)
{
	uint8_t digest[SHA256_BYTES];

	sha256(response.p, response.n, digest);
	return heard->response_bytes == response.n && memcmp(heard->response_digest, digest, sizeof digest) == 0;
}
