/*
 * One http call as libcurl sees it: the request it makes, the reply it gathers, and what is known about both.
 *
 *   transfer_new()   headers filled in, easy handle set up; or the reason why this call can never be made
 *   … libcurl …      sockets judged, the body read out once, the reply gathered within its ceiling
 *   transfer_judge() return code and reply become an outcome
 *
 * Used by http.c's thread alone.
 */
#ifndef HX_ACT_TRANSFER_H
#define HX_ACT_TRANSFER_H

#include <curl/curl.h>
#include <netinet/in.h>

#include "act/http.h"
#include "act/secret.h"
#include "act/sockets.h"
#include "base/strbuf.h"

#define TRANSFER_HEAD_BYTES_MAX 65536 /* of all heads of a reply, and its trailer; libcurl keeps their lines */
#define TRANSFER_ERROR_BODY_MAX 65536 /* so much is kept of a reply that is no success */
#define TRANSFER_IDLE_SECONDS 3       /* Node.js closes after 5; a request that crosses the close is unknown */

struct transfer {
	struct job *job;
	const struct http_options *options;
	struct sockets *open; /* of all transfers */
	CURL *easy;
	struct curl_slist *headers;
	struct secrets secrets;
	size_t body_read;    /* bytes of the request's body that libcurl took */
	unsigned requests;   /* how often a connection was ready and a request was about to be sent */
	unsigned sockets;    /* opened for this call; 0: it uses an idle connection */
	bool unclean;        /* that had bytes waiting, and nothing was sent on it */
	const char *refusal; /* of the last address that was refused; NULL: none was */
	char refused_address[INET6_ADDRSTRLEN];
	size_t head_bytes;
	bool head_complete; /* of the reply */
	struct strbuf reply;
	struct strbuf made; /* of a reply that is no JSON */
	bool reply_too_long;
	char error[CURL_ERROR_SIZE];
	struct transfer *next, **slot; /* http.c's list */
};

/* HX_CONFIG_ERROR: this call can never be made (the detail says why, without values); HX_NO_MEMORY. */
enum hx_code transfer_new(struct job *job, const struct http_options *options, struct sockets *open,
			  struct transfer **ret_transfer, struct hx_error *err) HX_MUST_CHECK;
/* Out of the multi handle already. Takes NULL and half-built ones. */
void transfer_free(struct transfer *transfer);

/* After libcurl's verdict: it has sent nothing because the connection was unclean, and should try a fresh one. */
bool transfer_try_fresh(struct transfer *transfer);
/* After libcurl's verdict. The output is in the words or in the transfer. */
struct verdict transfer_judge(struct transfer *transfer, CURLcode code, struct strbuf *words);
/* The same for one that was cancelled in the middle. */
struct verdict transfer_judge_cancelled(struct transfer *transfer, struct strbuf *words);

#endif
