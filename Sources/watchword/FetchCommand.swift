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
            "Exit codes are curl's: 0 for any response, 6, 7, 28, 60 and so on for what went wrong, 67 for no log-in.")

    @OptionGroup var options: FetchOptions
    @OptionGroup var broker: BrokerOptions

    func run() throws {
        var params = try options.params()
        let interrupt = watchword_interrupt_descriptor()
        params.userInfo = SecretArguments.taken.userInfo
        if let user = SecretArguments.taken.user {
            params.credential = try CommandLineCredential.make(user, interrupt: interrupt)
        }
        let output = try ResponseOutput(file: options.output)
        do {
            try fetch(params, interrupt: interrupt, to: output)
            try output.finish()
        } catch let failure as ClientFailure {
            output.discard()
            if case .refused(let error) = failure, error.kind == .challengeCancelled {
                // The reason was told when the question came.
                throw ExitCode(ExitStatus.loginDenied)
            }
            throw report(failure)
        } catch {
            output.discard()
            throw error
        }
    }

    private func fetch(_ params: FetchRunParams, interrupt: Int32, to output: borrowing ResponseOutput) throws {
        let location = SocketLocation(
            explicit: broker.socket, environment: { name in getenv(name).map { String(cString: $0) } }, uid: getuid())
        let connection = try BrokerLauncher.connect(location, mayStart: !broker.noStart)
        connection.interruptDescriptor = interrupt
        if options.verbose { connection.onNotification = Verbose.show }
        try connection.initialize(name: "watchword", version: WatchwordVersion.current, delivery: .request)
        let result = try connection.call(.fetchRun, params.json) { challenge in
            answer(challenge, interrupt: interrupt)
        }
        try write(result, connection, to: output)
    }

    /// Without a terminal nobody can be asked: that is said at once, and the fetch ends.
    private func answer(_ challenge: IncomingChallenge, interrupt: Int32) -> ChallengeAnswer? {
        guard let terminal = Terminal() else {
            let (site, scheme) = (TerminalQuestion.site(challenge.params), TerminalQuestion.scheme(challenge.params))
            let realm = challenge.params["protectionSpace"]?["realm"]?.string ?? ""
            let refused = (challenge.params["previousFailureCount"]?.integer ?? 0) > 0
            complain(
                "\(site) \(refused ? "has refused the credential, and asks again" : "asks for a log-in") (\(scheme), \"\(realm.shortened)\"), "
                    + "and there is no terminal to ask at. Run it once at a terminal, or give -u user:password.")
            return .cancel
        }
        return TerminalQuestion(interrupt: interrupt).ask(challenge, at: terminal)
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

/// What `-v` shows.
enum Verbose {
    static func show(_ method: String, _ params: JSON?) {
        let status = params?["status"]?.integer ?? 0
        let text: String? =
            switch method {
            case BrokerMethodName.fetchRedirect.rawValue:
                "status \(status): on to \(params?["to"]?.string?.shortened ?? "")"
            case BrokerMethodName.fetchHeaders.rawValue: "status \(status)"
            case BrokerMethodName.serverClosing.rawValue: "the broker is closing"
            default: nil
            }
        guard let text else { return }
        let line = Array("* \(text)\n".utf8)
        _ = Glibc.write(STDERR_FILENO, line, line.count)
    }
}

/// The credential of `-u`.
enum CommandLineCredential {
    static func make(_ text: Secret, interrupt: Int32) throws -> Credential {
        let (user, password) = text.withUnsafeBytes { bytes -> (String, Secret?) in
            guard let colon = bytes.firstIndex(of: UInt8(ascii: ":")) else {
                return (String(decoding: bytes, as: UTF8.self), nil)
            }
            return (
                String(decoding: bytes[..<colon], as: UTF8.self),
                Secret(copying: UnsafeRawBufferPointer(rebasing: bytes[(colon + 1)...]))
            )
        }
        if let password { return .password(PasswordCredential(user: user, password: password)) }
        guard let terminal = Terminal() else {
            complain("-u \(user.shortened) names no password, and there is no terminal to ask at.")
            throw ExitCode(ExitStatus.loginDenied)
        }
        let prompt = "Password for \(user.shortened): "
        switch terminal.readLine(prompt, echo: false, interrupt: interrupt, broker: -1, isStillOpen: { true }) {
        case .text(let password): return .password(PasswordCredential(user: user, password: password))
        case .end, .withdrawn, .interrupted:
            terminal.show("\n")
            throw ExitCode(128 + SIGINT)
        }
    }
}
