#pragma once

#include <stdbool.h>
#include <stddef.h>

/// The limit for the memory of a script, in bytes.
#define ENGINE_BYTES (16u << 20)

/// The limit for a result or an error message, in bytes.
#define ENGINE_TEXT_BYTES 4096

/// A text for the broker: a result, or an error message.
struct engine_text {
    bool is_error;
    char bytes[ENGINE_TEXT_BYTES];
};

/// Replaces the current script. The text is empty if the script was loaded.
void engine_load(const char *script, size_t length, struct engine_text *text);

/// Calls `FindProxyForURL`, or `FindProxyForURLEx` in a script that has only that.
void engine_find(const char *url, const char *host, struct engine_text *text);
