#ifndef WATCHWORD_TOML_GUARD_H
#define WATCHWORD_TOML_GUARD_H

#include <cstdint>
#include <string_view>

struct GuardFinding {
    /// The error message; NULL if nothing was found.
    const char *problem;
    uint32_t line, column;
};

/// Finds input that toml++ 3.3 handles badly: NUL bytes, for which its error message is unclear, and dotted keys of many parts,
/// which make it overflow the stack (https://github.com/marzer/tomlplusplus/pull/242).
GuardFinding guard(std::string_view text);

#endif
