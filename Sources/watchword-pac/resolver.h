#pragma once

#include <stdbool.h>

/// The limit for a list of addresses, with its end, in bytes.
#define RESOLVER_BYTES 1024

/// Starts a process that resolves names for this one, and ends with it. Returns `false` if that fails.
bool resolver_start(void);

/// Begins an evaluation, which may resolve a limited number of names in a limited time.
void resolver_begin(void);

/// Resolves a name or an address. Writes the addresses, separated by ";".
bool resolver_find(const char *name, char addresses[RESOLVER_BYTES]);

/// Writes the addresses of this machine from which connections to other networks are made.
bool resolver_own(char addresses[RESOLVER_BYTES]);
