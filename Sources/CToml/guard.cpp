#include "guard.h"

#include "CToml.h"

namespace {

/// Scans a text just enough to distinguish keys from strings and comments. Up to the first syntax error, where the parser
/// stops, it recognizes the same strings as the parser.
class Guard {
  public:
    explicit Guard(std::string_view text) : text(text) {}

    GuardFinding run() {
        while (!problem && at < text.size()) step();
        return {problem, line, column};
    }

  private:
    std::string_view text;
    size_t at = 0;
    uint32_t line = 1, column = 1;
    const char *problem = nullptr;
    int dots = 0;

    bool follows(char byte) const { return at < text.size() && text[at] == byte; }

    void advance() {
        if (at >= text.size() || problem) return;
        if (text[at] == '\0') {
            problem = "unexpected NUL byte";
            return;
        }
        if (text[at] == '\n') {
            line++;
            column = 1;
        } else if ((text[at] & 0xC0) != 0x80) {
            column++;
        }
        at++;
    }

    void step() {
        switch (text[at]) {
            case '"':
            case '\'': string(text[at]); return;
            case '#':
                while (!problem && at < text.size() && text[at] != '\n') advance();
                return;
            case '.':
                if (++dots >= WATCHWORD_TOML_DEPTH) problem = "a dotted key has too many parts";
                break;
            case '\n':
            case '=':
            case ',':
            case '[':
            case '{': dots = 0; break;
            default: break;
        }
        advance();
    }

    void string(char mark) {
        const bool is_long = text.substr(at, 3) == std::string_view(mark == '"' ? "\"\"\"" : "'''");
        for (int skipped = is_long ? 3 : 1; skipped > 0; skipped--) advance();
        int marks = 0;
        while (!problem && at < text.size()) {
            if (!is_long && text[at] == '\n') return;
            marks = text[at] == mark ? marks + 1 : 0;
            if (mark == '"' && text[at] == '\\') advance();
            advance();
            if (marks == (is_long ? 3 : 1)) break;
        }
        // A multi-line string may contain two more quotation marks before its delimiter.
        for (int extra = is_long ? 2 : 0; !problem && extra > 0 && follows(mark); extra--) advance();
    }
};

}  // namespace

GuardFinding guard(std::string_view text) { return Guard(text).run(); }
