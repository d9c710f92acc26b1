#ifndef WATCHWORD_CKEYDERIVATION_H
#define WATCHWORD_CKEYDERIVATION_H

#include <stdint.h>

// These functions return the number of rounds that a file specifies for the derivation of its keys from their passphrase.
// OpenSSL performs all of them, and cannot be interrupted. A block of scrypt counts as one round, because it takes about as
// long as a round of PBKDF2. Parts that OpenSSL would not read count as 0. Numbers saturate at UINT64_MAX.

struct bio_st;
struct PKCS12_st;

// Returns the rounds for all PEM keys in `input`, whatever the labels of their blocks. Reads `input` to its end.
uint64_t watchword_rounds_of_pem(struct bio_st *input);

// Returns the rounds for the MAC of `store`.
uint64_t watchword_rounds_of_mac(const struct PKCS12_st *store);

// Returns the rounds for everything in `store` except its MAC. Decrypts parts only as long as the sum does not exceed `limit`.
uint64_t watchword_rounds_of_pkcs12(const struct PKCS12_st *store, const char *passphrase, uint64_t limit);

#endif
