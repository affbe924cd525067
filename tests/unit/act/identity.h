/* A certificate for a service of a test, made for the occasion: its own authority. */
#ifndef HX_TESTS_UNIT_ACT_IDENTITY_H
#define HX_TESTS_UNIT_ACT_IDENTITY_H

#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <stdio.h>

/* For these names ("IP:127.0.0.1,DNS:a.test"); who trusts the file trusts the service. To be freed. */
static inline SSL_CTX *identity_make(const char *names, const char *ca_file)
{
	EVP_PKEY *key = EVP_EC_gen("P-256");
	X509 *certificate = X509_new();
	X509_NAME *name = X509_get_subject_name(certificate);
	X509_EXTENSION *extension = X509V3_EXT_conf_nid(NULL, NULL, NID_subject_alt_name, names);
	FILE *f = fopen(ca_file, "w");
	SSL_CTX *context = SSL_CTX_new(TLS_server_method());

	assert_true(key && extension && f && X509_set_version(certificate, 2));
	assert_true(X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC, (const unsigned char *)"s", -1, -1, 0));
	assert_true(X509_set_issuer_name(certificate, name) && X509_set_pubkey(certificate, key));
	assert_true(X509_gmtime_adj(X509_getm_notBefore(certificate), -3600) &&
		    X509_gmtime_adj(X509_getm_notAfter(certificate), 3600));
	assert_true(X509_add_ext(certificate, extension, -1) && X509_sign(certificate, key, EVP_sha256()));
	assert_true(PEM_write_X509(f, certificate) == 1 && fclose(f) == 0);
	assert_true(SSL_CTX_use_certificate(context, certificate) == 1 && SSL_CTX_use_PrivateKey(context, key) == 1);
	X509_EXTENSION_free(extension);
	X509_free(certificate);
	EVP_PKEY_free(key);
	return context;
}

#endif
