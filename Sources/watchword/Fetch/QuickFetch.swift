import ArgumentParser
import Glibc
import WatchwordProtocol

/// `watchword fetch` with the options that most scripts have: read without the parser of all others, which takes longer than the
/// fetch itself (two thirds of the processor time of a whole command with 70 options). Whatever is not among them is the parser's.
struct QuickFetch: Equatable {
    private(set) var url = ""
    private(set) var silent = false
    private(set) var showError = false
    private(set) var fail = false
    private(set) var location = false
    private(set) var noStart = false
    private(set) var output: String?
    private(set) var socket: String?

    /// `nil` for a command that has to be read by the parser, be it right or wrong.
    /// - Parameter arguments: without the name of the program and without secrets, of which there must have been none.
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

    /// A URL that stands for itself.
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
        try FetchRun(
            items: [item], location: SocketOption.location(explicit: socket), mayStart: !noStart,
            showsProgress: !silent && !isMixed
        ).run()
    }
}
