#ifndef WATCHWORD_COPENSSL_SHIM_H
#define WATCHWORD_COPENSSL_SHIM_H

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/pkcs12.h>
#include <openssl/rand.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>
#include <stdint.h>

// Macros with casts or calls, which Swift does not see.
static const uint64_t watchword_ssl_no_renegotiation = SSL_OP_NO_RENEGOTIATION;
static const uint64_t watchword_ssl_dont_insert_empty_fragments = SSL_OP_DONT_INSERT_EMPTY_FRAGMENTS;
static const int watchword_ssl_read_alert = SSL_CB_READ_ALERT;

// A distinguished name as RFC 4514 writes it; what is not ASCII stays UTF-8.
static inline int watchword_x509_print_name(BIO *out, const X509_NAME *name) {
    return X509_NAME_print_ex(out, name, 0, (XN_FLAG_RFC2253 & ~ASN1_STRFLGS_ESC_MSB) | ASN1_STRFLGS_UTF8_CONVERT);
}

#endif
