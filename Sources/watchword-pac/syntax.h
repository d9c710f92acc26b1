#pragma once

#include <stddef.h>

/// Returns the first construct of a script that Duktape does not know, because it came after ECMAScript 5, and sets its line,
/// counted from 1. Returns `NULL` if there is none. Used only to explain an error, so it need not understand every script.
const char *syntax_later_construct(const char *script, size_t length, int *line);
