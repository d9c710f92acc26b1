import ArgumentParser
import JSONText
import WatchwordClient
import WatchwordProtocol

extension CompletionKind {
    /// Completes with values from a list of the running broker; with nothing if none is running.
    /// - Parameters:
    ///   - method: the method that returns the list.
    ///   - list: the member of its result.
    ///   - path: the member of each element, or a member of that.
    static func listed(by method: some CallableMethod & Sendable, _ list: String, _ path: String...) -> CompletionKind {
        .custom { words, _, prefix in
            let option = words.firstIndex(of: "--socket").map { words.index(after: $0) }
            let socket = option.flatMap { words.indices.contains($0) ? words[$0] : nil }
            guard let connection = try? BrokerConnection(SocketLocation(ofThisProcess: socket)) else { return [] }
            connection.callLimit = .seconds(2)
            let elements = (try? connection.call(method))?[list]?.elements ?? []
            let values = elements.compactMap { path.reduce($0) { (value: JSON?, name) in value?[name] }?.string }
            // bash escapes the colon of an id that it has completed in part.
            let typed = prefix.filter { $0 != "\\" }
            return values.filter { $0.hasPrefix(typed) && isWord($0) }.map(escaped)
        }
    }

    /// Whether the shell treats the value as one word without special characters. Any other value would be changed in
    /// the command line.
    private static func isWord(_ value: String) -> Bool {
        value.utf8.allSatisfy {
            UInt8(ascii: "a")...UInt8(ascii: "z") ~= $0 | 0x20 || "0123456789:/._-+@".utf8.contains($0)
        }
    }

    /// Escapes the colon for zsh, where a description follows it.
    private static func escaped(_ value: String) -> String {
        guard CompletionShell.requesting == .zsh else { return value }
        return value.split(separator: ":", omittingEmptySubsequences: false).joined(separator: "\\:")
    }
}
