import JSONText
import WatchwordClient
import WatchwordProtocol

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
