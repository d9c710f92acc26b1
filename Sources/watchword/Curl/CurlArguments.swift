import Synchronization
import WatchwordProtocol

/// The arguments of `watchword fetch`, parsed as curl parses them and rewritten for ArgumentParser, which supports neither
/// abbreviations, nor `--no-` before a flag, nor values that begin with a dash. Each option has its full name and an argument
/// of its own. Ignored options are omitted.
struct CurlArguments: Equatable {
    /// The arguments for ArgumentParser.
    private(set) var rewritten: [String] = []
    /// The ignored options, in the order of the command.
    private(set) var ignored: [CurlOption] = []

    /// The reason for refusing a command line, in one line.
    struct Refusal: Error, Equatable {
        let text: String
    }

    private enum Token: Equatable {
        case flag(CurlOption)
        case option(CurlOption, String)
        /// An argument passed to ArgumentParser unchanged: a URL, an option that only `fetch` has, or an unknown option.
        case other(String)
    }

    private static let storage = Mutex<CurlArguments?>(nil)

    /// The arguments of this process, for options whose order among other options matters; `nil` before they are parsed.
    static var current: CurlArguments? {
        get { storage.withLock { $0 } }
        set { storage.withLock { $0 = newValue } }
    }

    /// The options of `fetch` that curl does not have. They are not abbreviations: `--keep` does not mean `--keepalive-time`.
    private static let own: Set<String> = ["keep", "socket", "no-start"]

    /// - Parameter arguments: the arguments after `fetch`.
    /// - Throws: `Refusal` for a refused option or value, a missing value, or an abbreviation that is ambiguous or belongs to
    ///   an option with a value.
    init(_ arguments: [String]) throws(Refusal) {
        var tokens: [Token] = []
        var rest = arguments[...]
        while let argument = rest.popFirst() {
            if argument == "--" {
                tokens += ([argument] + rest).map { .other($0) }
                break
            } else if argument.hasPrefix("--") {
                try Self.readLong(argument, &rest, &tokens)
            } else if argument.hasPrefix("-"), argument.count > 1 {
                try Self.readShort(argument, &rest, &tokens)
            } else {
                tokens.append(.other(argument))
            }
        }
        for token in tokens { try append(token) }
    }

    private static func readLong(
        _ argument: String, _ rest: inout ArraySlice<String>, _ tokens: inout [Token]
    ) throws(Refusal) {
        let parts = argument.dropFirst(2).split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
        let name = String(parts[0])
        if own.contains(name) {
            tokens.append(.other(argument))
            // The value may begin with a dash.
            if name != "no-start", parts.count == 1, let value = rest.popFirst() { tokens.append(.other(value)) }
            return
        }
        guard let option = try option(named: name) else {
            if let negated = negated(name) {
                tokens.removeAll { $0 == .flag(negated) }
            } else {
                tokens.append(.other(argument))
            }
            return
        }
        try check(option)
        if option.long == "json", SecretArguments.isJSON(parts.count > 1 ? parts[1].utf8.first : rest.first?.utf8.first)
        {
            throw Refusal(text: "curl's --json DATA is not supported; use -d @file -H 'Content-Type: application/json'")
        }
        if option.takesValue {
            guard let value = parts.count > 1 ? String(parts[1]) : rest.popFirst() else { throw missingValue(option) }
            tokens.append(.option(option, value))
        } else {
            tokens.append(parts.count > 1 ? .other(argument) : .flag(option))
        }
    }

    private static func readShort(
        _ argument: String, _ rest: inout ArraySlice<String>, _ tokens: inout [Token]
    ) throws(Refusal) {
        var letters = argument.dropFirst()
        while let letter = letters.popFirst() {
            guard let option = CurlOption.named(short: letter) else {
                tokens.append(.other("-\(letter)"))
                continue
            }
            try check(option)
            guard option.takesValue else {
                tokens.append(.flag(option))
                continue
            }
            guard let value = letters.isEmpty ? rest.popFirst() : String(letters) else { throw missingValue(option) }
            tokens.append(.option(option, value))
            break
        }
    }

    /// Returns the option with this name or unique abbreviation. An option with a value cannot be abbreviated, because
    /// `SecretArguments` finds secrets by full names.
    private static func option(named name: String) throws(Refusal) -> CurlOption? {
        if let option = CurlOption.named(long: name) { return option }
        guard name.count > 1, !name.hasPrefix("no-") else { return nil }
        let found = CurlOption.all.filter { $0.long.hasPrefix(name) }
        guard let first = found.first else { return nil }
        guard found.count == 1 else {
            let names = found.map { "--\($0.long)" }.joined(separator: ", ")
            throw Refusal(text: "--\(name) is ambiguous; it could be: \(names.shortened)")
        }
        guard !first.takesValue else {  // guard: curl-secret-abbreviation
            throw Refusal(
                text: "write --\(first.long) instead of --\(name); options with a value cannot be abbreviated")
        }
        return first
    }

    /// Returns the flag X for `--no-X`, which cancels an earlier X, as in curl.
    private static func negated(_ name: String) -> CurlOption? {
        guard name.hasPrefix("no-"), let option = CurlOption.named(long: String(name.dropFirst(3))),
            !option.takesValue
        else { return nil }
        return option
    }

    private static func check(_ option: CurlOption) throws(Refusal) {
        guard case .refused(let reason) = option.verdict else { return }  // guard: curl-refused
        throw Refusal(
            text: "curl's \(option.name) is refused (see: man watchword-curl). \(reason)")
    }

    private static func missingValue(_ option: CurlOption) -> Refusal {
        Refusal(text: "\(option.name) requires a value")
    }

    private mutating func append(_ token: Token) throws(Refusal) {
        switch token {
        case .other(let text): rewritten.append(text)
        case .flag(let option), .option(let option, _):
            if case .ignored = option.verdict { return ignored.append(option) }
            guard case .option(_, let value) = token else { return rewritten.append("--\(option.long)") }
            if option.long == "url" {
                // The URL is rewritten without --url, so ArgumentParser would read such a value as an option.
                guard !value.hasPrefix("-") else {
                    throw Refusal(text: "the value of --url begins with a dash: \(DisplayURL.text(value)) is not a URL")
                }
                rewritten.append(value)
            } else if value.hasPrefix("-") {
                rewritten.append("--\(option.long)=\(value)")
            } else {
                rewritten += ["--\(option.long)", value]
            }
        }
    }

    /// A note for each ignored option except `-q`, because `fetch` never reads .curlrc.
    var notes: [String] {
        ignored.compactMap { option in
            guard case .ignored(let reason) = option.verdict, option.long != "disable" else { return nil }
            return "\(option.name) is ignored. \(reason)"
        }
    }
}
