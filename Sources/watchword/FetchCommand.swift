import ArgumentParser
import CPlatform
import Glibc
import JSONText
import WatchwordClient
import WatchwordProtocol

struct FetchCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "fetch", abstract: "Fetch a URL; ask at the terminal when a server or a proxy wants a log-in.",
        discussion:
            """
            Also asked is what to do about a certificate that is not trusted, and for a client certificate. Without a \
            terminal an agent of the desktop is asked for log-ins, where there is one. Exit codes are curl's: 0 for any \
            response, 6, 7, 28 and so on for what went wrong, 58 for a client certificate, 60 for a server that is not \
            trusted, 67 for no log-in, 90 for another key than the pinned one, 97 for a proxy. 67 is also the code for a \
            response of status 401 or 407 to a command that names a user, a token or a scheme.

            Examples:
              watchword fetch https://intranet.example/report
              watchword fetch -L --keep keyring https://intranet.example/report
              watchword fetch -x socks5h://gate.example https://intranet.example/report
              watchword fetch --cert me.pem --key me.key https://intranet.example/report
            """)

    @OptionGroup var options: FetchOptions
    @OptionGroup var broker: BrokerOptions

    func run() throws {
        let interrupt = watchword_interrupt_descriptor()
        let params = try options.params(interrupt: interrupt)
        let output = try ResponseOutput(file: options.output)
        var code = ExitCode.success
        do {
            code = try fetch(params, interrupt: interrupt, to: output)
            try output.finish()
        } catch let failure as ClientFailure {
            output.discard()
            throw report(failure)
        } catch {
            output.discard()
            throw error
        }
        if code != .success { throw code }
    }

    /// The code to end with once the response is where it belongs.
    private func fetch(
        _ params: FetchRunParams, interrupt: Int32, to output: borrowing ResponseOutput
    ) throws -> ExitCode {
        let connection = try broker.connect()
        connection.interruptDescriptor = interrupt
        if options.verbose { connection.onNotification = Verbose.show }
        try connection.initialize(name: "watchword", version: WatchwordVersion.current, delivery: .request)
        let question = TerminalQuestion(
            params, keep: options.login.keep, isInsecure: options.tls.insecure, interrupt: interrupt)
        let hasTerminal = Terminal() != nil
        connection.onCanAuthenticate = { question.canAsk(about: $0, hasTerminal: hasTerminal) }
        _ = try connection.call(.authSubscribe, ["asksCanAuthenticate": true])
        var unanswered: JSON?
        let result: JSON
        do throws(ClientFailure) {
            result = try connection.call(.fetchRun, params.json) { challenge in
                guard let terminal = Terminal() else {
                    unanswered = challenge.params
                    return .useDefault
                }
                return question.ask(challenge, at: terminal)
            }
        } catch {
            throw explained(error, unanswered)
        }
        if let unanswered, [401, 407].contains(result["status"]?.integer) {
            complain(MissingAnswer.login(unanswered))
            throw ExitCode(ExitStatus.loginDenied)
        }
        let unused = UnusedLogin(result, params)
        // Whoever was asked by this server, or this proxy, knows what it wants.
        let isKnown = unused.map { unused in question.lastLogin.map(unused.isAnswer) ?? false } ?? false
        let text = isKnown ? nil : unused?.text
        if let text { complain(text) }
        let isDenied = unused?.wasAskedFor == true
        if options.fail && !options.json && (isDenied || text != nil) {
            throw ExitCode(isDenied ? ExitStatus.loginDenied : ExitStatus.httpError)
        }
        try write(result, connection, to: output)
        return isDenied ? ExitCode(ExitStatus.loginDenied) : .success
    }

    /// What the options have to do with a certificate that is not trusted.
    private func explained(_ failure: ClientFailure, _ unanswered: JSON?) -> any Error {
        guard case .refused(let error) = failure, error.kind == .serverNotTrusted else { return failure }
        if options.tls.pinnedPublicKey != nil {
            complain("\(error.text) Its key is not the one of --pinnedpubkey.")
            return ExitCode(ExitStatus.pinMismatch)
        }
        guard options.tls.insecure, let text = unanswered.flatMap(MissingAnswer.trust) else { return failure }
        complain("\(error.text) \(text)")
        return ExitCode(ExitStatus.code(for: .serverNotTrusted))
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
