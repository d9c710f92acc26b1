#include "derivation.h"

#include <openssl/asn1t.h>
#include <openssl/pem.h>
#include <openssl/pkcs12.h>
#include <openssl/x509.h>

static uint64_t rounds_product(uint64_t left, uint64_t right) {
    return left != 0 && right > UINT64_MAX / left ? UINT64_MAX : left * right;
}

static uint64_t rounds_sum(uint64_t left, uint64_t right) {
    return left > UINT64_MAX - right ? UINT64_MAX : left + right;
}

// Returns UINT64_MAX for a number that is missing, negative or too large.
static uint64_t rounds_number(const ASN1_INTEGER *number) {
    uint64_t value = 0;
    return number == NULL || !ASN1_INTEGER_get_uint64(&value, number) ? UINT64_MAX : value;
}

static uint64_t rounds_of_function(const X509_ALGOR *function) {
    uint64_t rounds = 0;
    switch (OBJ_obj2nid(function->algorithm)) {
    case NID_id_pbkdf2: {
        PBKDF2PARAM *given = ASN1_TYPE_unpack_sequence(ASN1_ITEM_rptr(PBKDF2PARAM), function->parameter);
        if (given != NULL) rounds = rounds_number(given->iter);
        PBKDF2PARAM_free(given);
        break;
    }
    case NID_id_scrypt: {
        SCRYPT_PARAMS *given = ASN1_TYPE_unpack_sequence(ASN1_ITEM_rptr(SCRYPT_PARAMS), function->parameter);
        if (given != NULL) {
            rounds = rounds_product(
                rounds_number(given->costParameter),
                rounds_product(
                    rounds_number(given->blockSize),
                    rounds_number(given->parallelizationParameter)));
        }
        SCRYPT_PARAMS_free(given);
        break;
    }
    default: break;
    }
    return rounds;
}

static uint64_t rounds_of_algorithm(const X509_ALGOR *algorithm) {
    uint64_t rounds = 0;
    if (OBJ_obj2nid(algorithm->algorithm) == NID_pbes2) {
        PBE2PARAM *given = ASN1_TYPE_unpack_sequence(ASN1_ITEM_rptr(PBE2PARAM), algorithm->parameter);
        if (given != NULL) rounds = rounds_of_function(given->keyfunc);
        PBE2PARAM_free(given);
    } else {
        PBEPARAM *given = ASN1_TYPE_unpack_sequence(ASN1_ITEM_rptr(PBEPARAM), algorithm->parameter);
        if (given != NULL) rounds = rounds_number(given->iter);
        PBEPARAM_free(given);
    }
    return rounds;
}

static uint64_t rounds_of_key(const X509_SIG *key) {
    const X509_ALGOR *algorithm = NULL;
    X509_SIG_get0(key, &algorithm, NULL);
    return algorithm == NULL ? 0 : rounds_of_algorithm(algorithm);
}

uint64_t watchword_rounds_of_pem(BIO *input) {
    uint64_t rounds = 0;
    while (BIO_pending(input) > 0) {
        char *name = NULL, *header = NULL;
        unsigned char *data = NULL;
        long length = 0;
        if (!PEM_read_bio(input, &name, &header, &data, &length)) continue;
        const unsigned char *start = data;
        X509_SIG *key = d2i_X509_SIG(NULL, &start, length);
        if (key != NULL) rounds = rounds_sum(rounds, rounds_of_key(key));
        X509_SIG_free(key);
        OPENSSL_free(name);
        OPENSSL_free(header);
        OPENSSL_clear_free(data, (size_t)length);
    }
    return rounds;
}

uint64_t watchword_rounds_of_mac(const PKCS12 *store) {
    const ASN1_INTEGER *rounds = NULL;
    PKCS12_get0_mac(NULL, NULL, NULL, &rounds, store);
    // The default is 1 (RFC 7292 section 4).
    return rounds == NULL ? 1 : rounds_number(rounds);
}

static uint64_t rounds_of_bags(const STACK_OF(PKCS12_SAFEBAG) *bags, int depth) {
    uint64_t rounds = 0;
    for (int index = 0; index < sk_PKCS12_SAFEBAG_num(bags); index++) {
        const PKCS12_SAFEBAG *bag = sk_PKCS12_SAFEBAG_value(bags, index);
        switch (PKCS12_SAFEBAG_get_nid(bag)) {
        case NID_pkcs8ShroudedKeyBag:
            rounds = rounds_sum(rounds, rounds_of_key(PKCS12_SAFEBAG_get0_pkcs8(bag)));
            break;
        case NID_safeContentsBag:
            rounds = depth == 0 ? UINT64_MAX
                                : rounds_sum(
                                      rounds, rounds_of_bags(PKCS12_SAFEBAG_get0_safes(bag), depth - 1));
            break;
        default: break;
        }
    }
    return rounds;
}

uint64_t watchword_rounds_of_pkcs12(const PKCS12 *store, const char *passphrase, uint64_t limit) {
    uint64_t rounds = 0;
    STACK_OF(PKCS7) *safes = PKCS12_unpack_authsafes(store);
    for (int index = 0; index < sk_PKCS7_num(safes) && rounds <= limit; index++) {
        PKCS7 *safe = sk_PKCS7_value(safes, index);
        STACK_OF(PKCS12_SAFEBAG) *bags = NULL;
        if (PKCS7_type_is_data(safe)) {
            bags = PKCS12_unpack_p7data(safe);
        } else if (PKCS7_type_is_encrypted(safe) && safe->d.encrypted != NULL) {
            const X509_ALGOR *algorithm = safe->d.encrypted->enc_data->algorithm;
            rounds = rounds_sum(rounds, rounds_of_algorithm(algorithm));
            if (rounds <= limit) bags = PKCS12_unpack_p7encdata(safe, passphrase, -1);
        }
        rounds = rounds_sum(rounds, rounds_of_bags(bags, 8));
        sk_PKCS12_SAFEBAG_pop_free(bags, PKCS12_SAFEBAG_free);
    }
    sk_PKCS7_pop_free(safes, PKCS7_free);
    return rounds;
}
