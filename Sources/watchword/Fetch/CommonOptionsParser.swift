import ArgumentParser
import Glibc
import WatchwordClient
import WatchwordProtocol

/// A fast parser for `watchword fetch` with the options that most scripts use. For the 70 options of `fetch`, ArgumentParser
/// takes two thirds of the processor time of the command. Only command lines that this parser rejects are passed to it.
struct CommonOptionsParser: Equatable {
    private(set) var url = ""
    private(set) var silent = false
    private(set) var showError = false
    private(set) var fail = false
    private(set) var location = false
    private(set) var noStart = false
    private(set) var output: String?
    private(set) var socket: String?

    /// Returns `nil` for a command line that ArgumentParser has to parse, valid or not.
    /// - Parameter arguments: the arguments without the program name, as returned by `withoutSecrets`.
    init?(_ arguments: [String]) {
        guard arguments.first == "fetch" else { return nil }
        var rest = arguments.dropFirst()
        while let argument = rest.popFirst() {
            switch argument {
            case "-s", "--silent": silent = true
            case "-S", "--show-error": showError = true
            case "-sS", "-Ss": (silent, showError) = (true, true)
            case "-f", "--fail": fail = true
            case "-L", "--location": location = true
            case "--no-start": noStart = true
            case "-o", "--output":
                guard output == nil, let value = Self.value(&rest), value != "-" else { return nil }
                output = value
            case "--socket":
                guard socket == nil, let value = Self.value(&rest) else { return nil }
                socket = value
            default:
                guard url.isEmpty, Self.isWhole(argument), !argument.hasPrefix("-") else { return nil }
                url = argument
            }
        }
        if url.isEmpty { return nil }
    }

    /// All options that `init` parses. The value of any other option may be a secret.
    private static let options = [
        "-s", "--silent", "-S", "--show-error", "-sS", "-Ss", "-f", "--fail", "-L", "--location", "--no-start", "-o",
        "--output", "--socket",
    ]

    /// Returns the arguments without the program name if none can contain a secret, as the value of an option or as part of a
    /// URL; otherwise `nil`. Avoids the search by `SecretArguments`, which takes as long as the rest of a fetch. Compares bytes,
    /// so that no secret is copied.
    static func withoutSecrets(_ arguments: UnsafeBufferPointer<UnsafeMutablePointer<CChar>?>) -> [String]? {
        let hasNone = arguments.allSatisfy { argument in
            guard let argument, strpbrk(argument, "@?") == nil else { return false }
            return argument.pointee != UInt8(ascii: "-") || options.contains { strcmp($0, argument) == 0 }
        }
        return hasNone ? arguments.compactMap { $0.map { String(cString: $0) } } : nil
    }

    /// Whether `url` has a scheme, and contains neither a pattern nor a character that has to be escaped.
    private static func isWhole(_ url: String) -> Bool {
        (url.hasPrefix("https://") || url.hasPrefix("http://")) && !url.contains { "{}[]\\".contains($0) || $0 <= " " }
    }

    private static func value(_ rest: inout ArraySlice<String>) -> String? {
        rest.popFirst().flatMap { $0.isEmpty || $0.hasPrefix("-") ? nil : $0 }
    }

    var item: FetchItem {
        var params = FetchRunParams(url: url)
        params.maxRedirects = location ? Limits.redirects : 0
        if WaitNotice.hasReader { params.notify = [.waiting] }
        var item = FetchItem(params: params, name: RemoteName.of(url) ?? url)
        item.file = output
        item.failsOnErrors = fail
        return item
    }

    func run() throws {
        if silent && !showError { StandardError.beSilent() }
        let isMixed = isatty(STDOUT_FILENO) == 1 && output == nil
        try FetchBatch(
            items: [item], location: SocketLocation(ofThisProcess: socket), mayStart: !noStart,
            showsProgress: !silent && !isMixed
        ).run()
    }
}
