import JSONText
import WatchwordClient
import WatchwordProtocol

/// Prompts for a user and a password, or for a token.
extension TerminalQuestion {
    func askLogin(
        _ challenge: IncomingChallenge, at terminal: borrowing Terminal
    ) throws(Ended) -> ChallengeAnswer {
        let params = challenge.params
        terminal.show(introduction(params))
        let proposed = params["proposedCredential"]?["user"]?.exactText
        let form = SpaceText.scheme(params) == "NTLM" ? " (DOMAIN\\user)" : ""
        let prompt = "User\(form)\(proposed.map { " [\($0.shortened)]" } ?? ""): "
        let text = try line(prompt, orWithout: Self.login, challenge, at: terminal)
        let typed = text.isEmpty ? proposed : text.withUnsafeBytes { ExactText(String(decoding: $0, as: UTF8.self)) }
        guard let user = typed else { throw proceed(without: Self.login, at: terminal) }
        if let answer = Self.storedAnswer(params, for: user) { return answer }
        let password = try line(
            "Password for \(user.shortened): ", orWithout: Self.login, challenge, at: terminal, echo: false)
        let persistence = storage.granted(by: params).persistence
        return .credential(.login(LoginCredential(user: user, password: password, persistence: persistence)))
    }

    func askToken(
        _ challenge: IncomingChallenge, at terminal: borrowing Terminal
    ) throws(Ended) -> ChallengeAnswer {
        let params = challenge.params
        terminal.show(introduction(params))
        // No token would be accepted.
        if params["error"]?["kind"]?.string == Challenge.AnswerProblem.connectionNotSecure.rawValue {
            throw proceed(without: Self.login, at: terminal)
        }
        let login = params["login"].flatMap(TokenLogin.init)
        if let login { terminal.show(BrowserLoginText.lines(login)) }
        let prompt = login == nil ? "Token: " : "Waiting for the login. Or type a token (Ctrl-D to continue without): "
        var token = try line(prompt, orWithout: Self.login, challenge, at: terminal, echo: false)
        // Enter is pressed easily on the way back from the browser.
        while token.isEmpty, login != nil {
            token = try line(prompt, orWithout: Self.login, challenge, at: terminal, echo: false)
        }
        guard !token.isEmpty else { throw proceed(without: Self.login, at: terminal) }
        let persistence = storage.granted(by: params).persistence
        return .credential(.login(LoginCredential(form: .token, secret: token, persistence: persistence)))
    }

    private static let login = "logging in"

    /// Describes the server, the realm, the security of the login and the last failure. Text from the server is marked as such.
    private func introduction(_ params: JSON) -> String {
        var lines = ["", "\(SpaceText.site(params)) requires a login."]
        if let note = SpaceText.longHostNote(params) { lines.append(note) }
        if let realm = SpaceText.realm(params) {
            lines.append("  The \(SpaceText.isProxy(params) ? "proxy" : "server") says: \"\(realm)\"")
        }
        lines.append("  Scheme: \(SpaceText.scheme(params) ?? "unknown"). \(Self.safety(params))")
        if let note = SpaceText.weaknessNote(params) {
            lines.append("  \(note)")
        } else if params["downgrade"]?.boolean == true {
            lines.append("  It accepted a stronger scheme earlier: someone may be intercepting the connection.")
        }
        if let former = SpaceText.formerRealm(params) {
            lines.append(
                "  The name of this login is new here; before, it was \"\(former)\". Its stored login is not used.")
        }
        if let note = Self.knownUsersNote(params) { lines.append("  \(note)") }
        let problem = Self.problem(params)
        if let problem { lines.append("  \(problem)") }
        if problem == nil, let note = storage.granted(by: params).note { lines.append("  \(note)") }
        if problem == nil, let note = sessionNote(params) { lines.append("  \(note)") }
        return lines.joined(separator: "\n") + "\n"
    }

    private static func safety(_ params: JSON) -> String {
        let space = params["protectionSpace"]
        if params["certificateException"]?.string != nil {
            return "The server is not verified: its certificate was accepted by exception."
        }
        if space?["protocol"]?.string == "https" { return "The connection is encrypted." }
        if let proxy = params["namedProxy"]?.string {
            return "Not encrypted, and sent to a proxy that the program names: \(proxy)"
        }
        if space?["receivesCredentialSecurely"]?.boolean == true {
            return "The connection is not encrypted; the password itself is not sent."
        }
        let method = space?["authenticationMethod"]?.string.flatMap(AuthenticationMethod.init(rawValue:))
        if let host = space?["host"]?.exactText, Loopback.isLoopback(host) {
            // A configured proxy is not part of the challenge.
            let condition = SpaceText.isProxy(params) ? "" : " unless a proxy is used"
            let credential = method == .bearer ? "token" : "password"
            return "Not encrypted, but the \(credential) stays on this machine\(condition)."
        }
        return method == .ntlm
            ? "Not secure: the login can be relayed, and the password guessed from it."
            : "Not secure: anyone on the network path can read the password."
    }
}

/// The selection of a matching stored credential by its user name.
extension TerminalQuestion {
    /// Returns a line with the saved logins; `nil` if there are none.
    static func knownUsersNote(_ params: JSON) -> String? {
        let names = known(params).map { "\"\($0.account.text.shortened)\"" }
        return names.isEmpty
            ? nil : "Saved logins: \(names.joined(separator: ", ")). Type one of these names to use it."
    }

    /// Returns the answer that uses the saved login of `user`; `nil` if there is none.
    static func storedAnswer(_ params: JSON, for user: ExactText) -> ChallengeAnswer? {
        let chosen = known(params).first { $0.account.text == user }
        return chosen.map { .credential(.stored($0.id)) }
    }

    private static func known(_ params: JSON) -> [KnownUser] {
        (params["knownUsers"]?.elements ?? []).compactMap(KnownUser.init)
    }
}

/// Prompts for a client certificate.
extension TerminalQuestion {
    func askCertificate(
        _ challenge: IncomingChallenge, at terminal: borrowing Terminal
    ) throws(Ended) -> ChallengeAnswer {
        let (params, nothing) = (challenge.params, "a certificate")
        terminal.show(certificateIntroduction(params))
        let passphraseIsWrong = params["error"]?["kind"]?.string == Challenge.AnswerProblem.passphraseWrong.rawValue
        var (file, key): (Secret, Secret?)
        if passphraseIsWrong, let last = lastCertificate {
            (file, key) = (last.certificate, last.privateKey)
        } else {
            file = try line("Certificate (file, or pkcs11: URI): ", orWithout: nothing, challenge, at: terminal)
            guard !file.isEmpty else { throw proceed(without: nothing, at: terminal) }
            file = CommandLineCertificate.absolute(file)
            key = try line("Private key (empty: in the same file): ", orWithout: nothing, challenge, at: terminal)
            key = key.flatMap { $0.isEmpty ? nil : CommandLineCertificate.absolute($0) }
        }
        let passphrase = try line(
            "Passphrase of the key (empty: none): ", orWithout: nothing, challenge, at: terminal, echo: false)
        let isStored = storage.granted(by: params).persistence != .none
        let given = CertificateCredential(
            certificate: file, privateKey: key, passphrase: passphrase.isEmpty ? nil : passphrase,
            persistence: isStored ? CommandLineCertificate.persistence(storage) : .none)
        lastCertificate = given
        return .credential(.certificate(given))
    }

    private func certificateIntroduction(_ params: JSON) -> String {
        var lines = ["", "\(SpaceText.site(params)) requests a client certificate."]
        if let note = SpaceText.longHostNote(params) { lines.append(note) }
        let issuers = (params["protectionSpace"]?["distinguishedNames"]?.elements ?? []).compactMap {
            $0.string?.shortened
        }
        lines += issuers.prefix(10).map { "  Accepts certificates from: \($0)" }
        if issuers.count > 10 { lines.append("  and from \(issuers.count - 10) other issuers") }
        if let problem = Self.problem(params) {
            lines.append("  \(problem)")
        } else if let note = sessionNote(params) {
            lines.append("  \(note)")
        }
        lines.append("  Leave the answer empty to continue without a certificate.")
        return lines.joined(separator: "\n") + "\n"
    }
}
