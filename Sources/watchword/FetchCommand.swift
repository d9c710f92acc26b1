import ArgumentParser
import CPlatform
import Glibc
import JSONText
import WatchwordClient
import WatchwordProtocol

struct FetchCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "fetch", abstract: "Fetch a URL; ask at the terminal when the server wants a log-in.",
        discussion:
            """
            Without a terminal an agent of the desktop is asked, where there is one. Exit codes are curl's: 0 for any \
            response, 6, 7, 28, 60 and so on for what went wrong, 67 for no log-in.

            Examples:
              watchword fetch https://intranet.example/report
              watchword fetch -L --keep keyring https://intranet.example/report
            """)

    @OptionGroup var options: FetchOptions
    @OptionGroup var broker: BrokerOptions

    func run() throws {
        var params = try options.params()
        let interrupt = watchword_interrupt_descriptor()
        params.userInfo = SecretArguments.taken.userInfo
        if let user = SecretArguments.taken.user {
            params.credential = try CommandLineCredential.make(
                user, keep: options.keep.persistence, interrupt: interrupt)
        }
        let output = try ResponseOutput(file: options.output)
        do {
            try fetch(params, interrupt: interrupt, to: output)
            try output.finish()
        } catch let failure as ClientFailure {
            output.discard()
            throw report(failure)
        } catch {
            output.discard()
            throw error
        }
    }

    private func fetch(_ params: FetchRunParams, interrupt: Int32, to output: borrowing ResponseOutput) throws {
        let connection = try broker.connect()
        connection.interruptDescriptor = interrupt
        if options.verbose { connection.onNotification = Verbose.show }
        try connection.initialize(name: "watchword", version: WatchwordVersion.current, delivery: .request)
        var unanswered: JSON?
        let result = try connection.call(.fetchRun, params.json) { challenge in
            guard let terminal = Terminal() else {
                unanswered = challenge.params
                return .useDefault
            }
            return TerminalQuestion(interrupt: interrupt, keep: options.keep).ask(challenge, at: terminal)
        }
        if let unanswered, result["status"]?.integer == 401 {
            complain(Self.loginMissing(unanswered))
            throw ExitCode(ExitStatus.loginDenied)
        }
        try write(result, connection, to: output)
    }

    /// There was no terminal to ask at, and nobody else had an answer.
    private static func loginMissing(_ challenge: JSON) -> String {
        let isRefusal = (challenge["previousFailureCount"]?.integer ?? 0) > 0
        let what = isRefusal ? "has refused the credential, and asks again" : "asks for a log-in"
        let how = "\(SpaceText.scheme(challenge) ?? "unknown"), \"\(SpaceText.realm(challenge) ?? "")\""
        return "\(SpaceText.site(challenge)) \(what) (\(how)), and there is no terminal to ask at. "
            + "Run it once at a terminal, or give -u user:password."
    }

    private func write(_ result: JSON, _ connection: BrokerConnection, to output: borrowing ResponseOutput) throws {
        let status = result["status"]?.integer ?? 0
        if options.json { return try output.write(result.serialized() + [UInt8(ascii: "\n")]) }
        if options.fail && status >= 400 {
            complain("The server answers with status \(status).")
            throw ExitCode(ExitStatus.httpError)
        }
        if options.include || options.head { try output.write(Self.header(result)) }
        if let bytes = result["body"].flatMap(BodyValue.bytes) { return try output.write(bytes) }
        guard let fetchID = result["body"]?["fetchId"]?.string else {
            throw ClientFailure.protocolViolation("a result without a body")
        }
        while true {
            let part = try connection.call(.fetchRead, FetchReadParams(fetchID: fetchID).json)
            guard let part = FetchReadResult(part) else { throw ClientFailure.protocolViolation("a body that is none") }
            try output.write(part.data)
            if part.isAtEnd { return }
        }
    }

    private static func header(_ result: JSON) -> [UInt8] {
        var text = "HTTP/\(result["httpVersion"]?.string ?? "1.1") \(result["status"]?.integer ?? 0)\r\n"
        for field in result["headers"]?.elements ?? [] {
            let pair = field.elements ?? []
            text += "\(pair.first?.string ?? ""): \(pair.last?.string ?? "")\r\n"
        }
        return Array((text + "\r\n").utf8)
    }
}
