#ifndef WATCHWORD_COPENSSL_SHIM_H
#define WATCHWORD_COPENSSL_SHIM_H

#include <openssl/bn.h>
#include <openssl/crypto.h>
#include <openssl/ec.h>
#include <openssl/engine.h>
#include <openssl/evp.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/pkcs12.h>
#include <openssl/rand.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>
#include <stdint.h>

#include "tokens.h"

// Swift does not import macros with casts or calls.
static const uint64_t watchword_ssl_no_renegotiation = SSL_OP_NO_RENEGOTIATION;
static const uint64_t watchword_ssl_dont_insert_empty_fragments = SSL_OP_DONT_INSERT_EMPTY_FRAGMENTS;
static const int watchword_ssl_read_alert = SSL_CB_READ_ALERT;

// Prints a distinguished name in the format of RFC 4514; non-ASCII characters stay UTF-8.
static inline int watchword_x509_print_name(BIO *out, const X509_NAME *name) {
    return X509_NAME_print_ex(out, name, 0, (XN_FLAG_RFC2253 & ~ASN1_STRFLGS_ESC_MSB) | ASN1_STRFLGS_UTF8_CONVERT);
}

// OpenSSL's engines are deprecated, but Debian 12 has no package of a PKCS#11 provider, which would replace them.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

// Returns an instance of libp11's engine for one PKCS#11 module; NULL if the engine or the module cannot be loaded. The
// instance is never freed.
static ENGINE *watchword_token_engine(const char *module_path) {
    ENGINE_load_dynamic();
    ENGINE *engine = ENGINE_by_id("dynamic");
    if (engine == NULL) return NULL;
    if (ENGINE_ctrl_cmd_string(engine, "ID", "pkcs11", 0) && ENGINE_ctrl_cmd_string(engine, "DIR_LOAD", "2", 0) &&
        ENGINE_ctrl_cmd_string(engine, "DIR_ADD", OPENSSL_info(OPENSSL_INFO_ENGINES_DIR), 0) &&
        ENGINE_ctrl_cmd_string(engine, "LOAD", NULL, 0) &&
        ENGINE_ctrl_cmd_string(engine, "MODULE_PATH", module_path, 0) && ENGINE_init(engine)) {
        return engine;
    }
    ENGINE_free(engine);
    return NULL;
}

static X509 *watchword_token_certificate(ENGINE *engine, const char *uri) {
    struct {
        const char *uri;
        X509 *certificate;
    } parameters = {uri, NULL};
    return ENGINE_ctrl_cmd(engine, "LOAD_CERT_CTRL", 0, &parameters, NULL, 0) ? parameters.certificate : NULL;
}

static EVP_PKEY *watchword_token_key(ENGINE *engine, const char *uri, const char *pin) {
    if (!ENGINE_ctrl_cmd_string(engine, "PIN", pin, 0)) return NULL;
    return ENGINE_load_private_key(engine, uri, NULL, NULL);
}

#pragma GCC diagnostic pop

#endif
