import Synchronization
import WatchwordProtocol

/// The arguments of `watchword fetch` as curl reads them, rewritten for the parser: one argument for each option, names whole,
/// what is ignored taken out. The parser itself knows nothing of abbreviations, of `--no-` before a flag, or of values that begin
/// with a dash.
struct CurlArguments: Equatable {
    /// For the parser.
    private(set) var rewritten: [String] = []
    /// The options that were taken out, in the order of the command.
    private(set) var ignored: [CurlOption] = []

    /// Why a command line is refused, in one line.
    struct Refusal: Error, Equatable {
        let text: String
    }

    private enum Token: Equatable {
        case flag(CurlOption)
        case option(CurlOption, String)
        /// The parser's business: `fetch`'s own options, and mistakes.
        case other(String)
    }

    private static let storage = Mutex<CurlArguments?>(nil)

    /// Those of this command, for options whose order counts among those of other names; `nil` before they were read.
    static var current: CurlArguments? {
        get { storage.withLock { $0 } }
        set { storage.withLock { $0 = newValue } }
    }

    /// The options of `fetch` that curl does not have. They come before an abbreviation.
    private static let own: Set<String> = ["keep", "socket", "no-start"]

    /// - Parameter arguments: what follows `fetch`.
    /// - Throws: `Refusal` for an option of curl that is refused, one without its value, or an abbreviation of several.
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
            // Its value may look like anything.
            if name != "no-start", parts.count == 1, let value = rest.popFirst() { tokens.append(.other(value)) }
            return
        }
        guard let option = try option(named: name) else {
            if let negated = try negated(name) {
                tokens.removeAll { $0 == .flag(negated) }
            } else {
                tokens.append(.other(argument))
            }
            return
        }
        try check(option)
        if option.long == "json", HiddenText.isJSON(parts.count > 1 ? parts[1].utf8.first : rest.first?.utf8.first) {
            throw Refusal(text: "curl's --json DATA: use -d @file -H 'Content-Type: application/json'")
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

    /// Whole, or the beginning of one name only. A secret is taken out of the argument list by the whole name of its option.
    private static func option(named name: String) throws(Refusal) -> CurlOption? {
        if let option = CurlOption.named(long: name) { return option }
        guard name.count > 1, !name.hasPrefix("no-") else { return nil }
        let found = CurlOption.all.filter { $0.long.hasPrefix(name) }
        guard let first = found.first else { return nil }
        guard found.count == 1 else {
            let names = found.map { "--\($0.long)" }.joined(separator: ", ")
            throw Refusal(text: "--\(name) is short for several options: \(names.shortened)")
        }
        guard !first.takesValue else {
            throw Refusal(text: "write --\(first.long) in place of --\(name): options with a value are not abbreviated")
        }
        return first
    }

    /// `--no-X`: as though X had not been given before, as with curl.
    private static func negated(_ name: String) throws(Refusal) -> CurlOption? {
        guard name.hasPrefix("no-"), let option = CurlOption.named(long: String(name.dropFirst(3))),
            !option.takesValue
        else { return nil }
        return option
    }

    private static func check(_ option: CurlOption) throws(Refusal) {
        guard case .refused(let reason) = option.verdict else { return }
        throw Refusal(
            text: "curl's \(option.name) is refused. \(reason.rawValue) All options of curl: man watchword-curl")
    }

    private static func missingValue(_ option: CurlOption) -> Refusal {
        Refusal(text: "\(option.name) takes a value; give one")
    }

    private mutating func append(_ token: Token) throws(Refusal) {
        switch token {
        case .other(let text): rewritten.append(text)
        case .flag(let option), .option(let option, _):
            if case .ignored = option.verdict { return ignored.append(option) }
            guard case .option(_, let value) = token else { return rewritten.append("--\(option.long)") }
            if option.long == "url" {
                // Alone it would be an option.
                guard !value.hasPrefix("-") else {
                    throw Refusal(text: "the value of --url begins with a dash: \(DisplayURL.text(value)) is no URL")
                }
                rewritten.append(value)
            } else if value.hasPrefix("-") {
                rewritten.append("--\(option.long)=\(value)")
            } else {
                rewritten += ["--\(option.long)", value]
            }
        }
    }

    /// One line for each option that was ignored.
    var notes: [String] {
        ignored.compactMap { option in
            guard case .ignored(let reason) = option.verdict, option.long != "disable" else { return nil }
            return "\(option.name) is ignored. \(reason.rawValue)"
        }
    }
}
