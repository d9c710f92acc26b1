#ifndef WATCHWORD_CPROTOCOLDOCUMENT_H
#define WATCHWORD_CPROTOCOLDOCUMENT_H

#include <stddef.h>

/// Returns the contents that Protocol/openrpc.json had at build time, and stores their length in bytes in `length`.
const unsigned char *watchword_openrpc_document(size_t *length);

#endif
