#ifndef WATCHWORD_COPENSSL_SHIM_H
#define WATCHWORD_COPENSSL_SHIM_H

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/rand.h>

#endif
