#ifndef WATCHWORD_TOML_GUARD_H
#define WATCHWORD_TOML_GUARD_H

#include <cstdint>
#include <string_view>

struct GuardFinding {
    /// NULL when nothing was found.
    const char *problem;
    uint32_t line, column;
};

/// Finds what toml++ 3.3 has no bound for: NUL bytes, which it does not report by name, and dotted keys of many parts, at
/// which it overflows the stack (https://github.com/marzer/tomlplusplus/pull/242).
GuardFinding guard(std::string_view text);

#endif
