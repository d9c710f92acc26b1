#define _GNU_SOURCE
#include "CPlatform.h"

#include <string.h>

void watchword_wipe(void *block, size_t length) { explicit_bzero(block, length); }
