#ifndef WATCHWORD_COAUTHPRESETS_H
#define WATCHWORD_COAUTHPRESETS_H

#include <stddef.h>

/// Returns the contents that contrib/oauth-presets.toml had at build time, and stores their length in bytes in `length`.
const unsigned char *watchword_oauth_presets(size_t *length);

#endif
