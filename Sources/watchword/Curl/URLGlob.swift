import WatchwordProtocol

/// A URL pattern with sets and ranges (curl(1), "URL"): `{one,two}`, `[1-10]`, `[001-100]`, `[a-z]`, `[0-100:10]`.
struct URLGlob: Equatable {
    /// The reason why a pattern is invalid, in lower case and without the pattern.
    struct Problem: Error, Equatable {
        let text: String
    }

    /// An expanded URL, with the values that replace `#1`, `#2` and so on in a file name.
    struct Match: Equatable {
        var url: String
        var values: [String]
    }

    /// The maximum number of URLs that one pattern may expand to.
    static let longest = 100_000

    private enum Part: Equatable {
        case text(String)
        case choice([String])
    }

    private var parts: [Part] = []

    init(_ pattern: String) throws(Problem) {
        var rest = pattern[...]
        var text = ""
        while let character = rest.popFirst() {
            switch character {
            case "\\" where rest.first.map { "{}[]".contains($0) } ?? false: text.append(rest.removeFirst())
            case "[" where Self.isAddress(rest): text.append(character)
            case "{":
                parts += [.text(text), .choice(try Self.set(&rest))]
                text = ""
            case "[":
                parts += [.text(text), .choice(try Self.range(&rest))]
                text = ""
            case "}": throw Problem(text: "unmatched }; use -g to take it literally")
            case "]" where !(text.contains("[")):
                throw Problem(text: "unmatched ]; use -g to take it literally")
            default: text.append(character)
            }
        }
        parts.append(.text(text))
        let count = parts.reduce(1.0) { count, part in
            if case .choice(let values) = part { count * Double(values.count) } else { count }
        }
        guard count <= Double(Self.longest) else {
            throw Problem(text: "it expands to more than \(Self.longest) URLs; use a smaller range")
        }
    }

    /// Whether the bracket after which `rest` begins is literal: an IPv6 address such as `[::1]`, or an empty `[]`.
    static func isAddress(_ rest: Substring) -> Bool {
        guard let end = rest.firstIndex(of: "]") else { return false }
        let inner = rest[..<end]
        return inner.isEmpty
            || inner.contains(":") && inner.utf8.allSatisfy { "0123456789abcdefABCDEF:.%".utf8.contains($0) }
                && inner.count { $0 == ":" } >= 2
    }

    private static func set(_ rest: inout Substring) throws(Problem) -> [String] {
        var (values, value) = ([String](), "")
        while let character = rest.popFirst() {
            switch character {
            case "}":
                if values.isEmpty && value.isEmpty { throw Problem(text: "empty {}; use -g to take it literally") }
                return values + [value]
            case ",":
                values.append(value)
                value = ""
            case "{", "[": throw Problem(text: "{ or [ inside {}; use -g to take it literally")
            case "\\": if let next = rest.popFirst() { value.append(next) }
            default: value.append(character)
            }
        }
        throw Problem(text: "unmatched {; use -g to take it literally")
    }

    /// Parses the range after a bracket. Like curl, refuses a range of letters that is longer than the alphabet, such as `A-z`,
    /// and a step that is larger than the range.
    private static func range(_ rest: inout Substring) throws(Problem) -> [String] {
        guard let end = rest.firstIndex(of: "]") else {
            throw Problem(text: "unmatched [; use -g to take it literally")
        }
        let inner = rest[..<end]
        rest = rest[rest.index(after: end)...]
        let name = "[\(String(inner).shortened)]"
        let bad = Problem(text: "bad range \(name); use -g to take it literally")
        let badStep = Problem(text: "the step of \(name) is larger than the range; use a smaller one, or -g")
        let halves = inner.split(separator: ":", omittingEmptySubsequences: false)
        let ends = halves[0].split(separator: "-", omittingEmptySubsequences: false)
        let step = halves.count == 2 ? Int(halves[1]) : halves.count == 1 ? 1 : nil
        guard ends.count == 2, let step, step > 0 else { throw bad }
        if let first = letter(ends[0]), let last = letter(ends[1]) {
            guard first <= last else { throw bad }
            let length = Int(last - first)
            guard length < 26 else {
                throw Problem(text: "range \(name) is longer than the alphabet; use [a-z] or [A-Z], or -g")
            }
            guard step <= max(1, length) else { throw badStep }
            return stride(from: first, through: last, by: step).map { String(Character(Unicode.Scalar($0))) }
        }
        guard let first = number(ends[0]), let last = number(ends[1]), first <= last else { throw bad }
        guard step <= max(1, last - first) else { throw badStep }
        guard (last - first) / step < longest else {
            throw Problem(text: "range \(name) has more than \(longest) values; use a smaller one, or -g")
        }
        let width = ends[0].hasPrefix("0") ? ends[0].count : 0
        return stride(from: first, through: last, by: step).map { value in
            String(repeating: "0", count: max(0, width - "\(value)".count)) + "\(value)"
        }
    }

    private static func letter(_ text: Substring) -> UInt8? {
        guard text.utf8.count == 1, let byte = text.utf8.first, (byte | 0x20) >= 0x61, (byte | 0x20) <= 0x7A else {
            return nil
        }
        return byte
    }

    private static func number(_ text: Substring) -> Int? {
        text.isEmpty || !text.utf8.allSatisfy { (0x30...0x39).contains($0) } ? nil : Int(text)
    }

    /// The expanded URLs in curl's order: the last set or range varies fastest.
    var matches: [Match] {
        var found = [Match(url: "", values: [])]
        for part in parts {
            switch part {
            case .text(let text): for index in found.indices { found[index].url += text }
            case .choice(let values):
                found = found.flatMap { match in values.map { Match(url: match.url + $0, values: match.values + [$0]) }
                }
            }
        }
        return found
    }

    /// Replaces `#1`, `#2` and so on in a file name of `-o`. A number without a set or range is left unchanged.
    static func fileName(_ name: String, _ values: [String]) -> String {
        var (result, rest) = ("", name[...])
        while let character = rest.popFirst() {
            let digits = rest.prefix { $0.isASCII && $0.isNumber }
            if character == "#", let number = Int(digits), number >= 1, number <= values.count {
                result += values[number - 1]
                rest = rest.dropFirst(digits.count)
            } else {
                result.append(character)
            }
        }
        return result
    }
}
