#include "CProtocolDocument.h"

#pragma clang diagnostic ignored "-Wc23-extensions"

static const unsigned char document[] = {
#embed "../../Protocol/openrpc.json"
};

const unsigned char *watchword_openrpc_document(size_t *length) {
    *length = sizeof document;
    return document;
}
