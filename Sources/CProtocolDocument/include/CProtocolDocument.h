#ifndef WATCHWORD_CPROTOCOLDOCUMENT_H
#define WATCHWORD_CPROTOCOLDOCUMENT_H

#include <stddef.h>

/// Protocol/openrpc.json, as it was when the program was built.
const unsigned char *watchword_openrpc_document(size_t *length);

#endif
