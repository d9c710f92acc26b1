import ArgumentParser
import Glibc
import JSONText
import WatchwordClient
import WatchwordProtocol

/// Prints a token for a program that sends it itself.
struct TokenCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        "token", "Print a token (Bearer) for a program that sends it itself.",
        """
        The token is released only if the configuration lists the path of watchword and the host in credentials.hand-out. \
        Where the configuration says how tokens are obtained, an expired one is renewed. No login is asked for: \
        "watchword fetch" does that.
        """,
        examples: "watchword token https://api.example", "watchword token --renew https://api.example")

    @Argument(help: "The URL that the token is for.")
    var url: String

    @Flag(help: "Print another token, because the server has refused the last one.")
    var renew = false

    @OptionGroup var broker: BrokerStartOptions

    func validate() throws {
        _ = try Site(url)
        let segments = Self.path(of: url).string.split(separator: "/")
        guard !segments.contains(".."), !HiddenSegments.leadUp(in: Self.path(of: url)) else {
            throw ValidationError("the path of the URL must not contain the segment ..")
        }
    }

    func run() throws {
        // One call, so that the token is not in the buffer of standard output.
        try token().withUnsafeBytes { try ResponseOutput.standardOutput().write($0) }
    }

    /// Returns the token, and a line feed.
    private func token() throws -> Secret {
        var pattern = try Site(url).pattern
        pattern.authenticationMethod = .bearer
        do throws(ClientFailure) {
            let connection = try broker.connect()
            connection.callLimit = Patience.withTheBroker
            try connection.initialize(name: "watchword token", version: WatchwordVersion.current, delivery: nil)
            var params = CredentialGet(pattern: pattern, account: nil, path: Self.path(of: url))
            var result = try connection.call(params)
            if renew {
                params.refusedToken = result["credential"]?["token"]?.withUTF8 { Secret(copying: $0) }
                result = try connection.call(params)
            }
            guard let token = result["credential"]?["token"]?.withUTF8({ Secret(copying: $0) }) else {
                throw .protocolViolation("a reply to credential/get without a token")
            }
            return Secret(joining: [.secret(token), .text("\n")])
        } catch {
            guard case .refused(let refused) = error, refused.kind == .unknownCredential else {
                throw reportRefusal(error)
            }
            throw refusal("no token for \(url) is stored; log in with: watchword fetch \(url)")
        }
    }

    /// Returns the path, without the query.
    private static func path(of url: String) -> ExactText {
        let text = url.prefix { $0 != "?" && $0 != "#" }
        guard let start = text.firstRange(of: "://"), let slash = text[start.upperBound...].firstIndex(of: "/") else {
            return "/"
        }
        return ExactText(String(text[slash...]))
    }
}
