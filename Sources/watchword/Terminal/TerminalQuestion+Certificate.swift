import JSONText
import WatchwordClient
import WatchwordProtocol

/// Prompts for a client certificate.
extension TerminalQuestion {
    func askCertificate(_ challenge: IncomingChallenge, at terminal: borrowing Terminal) -> ChallengeAnswer? {
        let params = challenge.params
        terminal.show(certificateIntroduction(params))
        let passphraseIsWrong = params["error"]?["kind"]?.string == Challenge.AnswerProblem.passphraseWrong.rawValue
        if passphraseIsWrong, let last = lastCertificate {
            return askPassphrase(certificate: last.certificate, key: last.privateKey, challenge, at: terminal)
        }
        switch readLine("Certificate (file, or pkcs11: URI): ", at: terminal, challenge, echo: true) {
        case .text(let certificate) where !certificate.isEmpty:
            return askKey(certificate, challenge, at: terminal)
        case .text, .end:
            return continueWithoutCertificate(terminal)
        case .interrupted, .withdrawn:
            return nil
        }
    }

    private func askKey(
        _ certificate: Secret, _ challenge: IncomingChallenge, at terminal: borrowing Terminal
    ) -> ChallengeAnswer? {
        switch readLine("Private key (empty: in the same file): ", at: terminal, challenge, echo: true) {
        case .text(let key):
            return askPassphrase(
                certificate: CommandLineCertificate.absolute(certificate),
                key: key.isEmpty ? nil : CommandLineCertificate.absolute(key), challenge, at: terminal)
        case .end:
            return continueWithoutCertificate(terminal)
        case .interrupted, .withdrawn:
            return nil
        }
    }

    private func askPassphrase(
        certificate: Secret, key: Secret?, _ challenge: IncomingChallenge, at terminal: borrowing Terminal
    ) -> ChallengeAnswer? {
        switch readLine("Passphrase of the key (empty: none): ", at: terminal, challenge, echo: false) {
        case .text(let passphrase):
            let persistence =
                storage.granted(by: challenge.params).persistence == .none
                ? Persistence.none : CommandLineCertificate.persistence(storage)
            let given = CertificateCredential(
                certificate: certificate, privateKey: key, passphrase: passphrase.isEmpty ? nil : passphrase,
                persistence: persistence)
            lastCertificate = given
            return .credential(.certificate(given))
        case .end:
            return continueWithoutCertificate(terminal)
        case .interrupted, .withdrawn:
            return nil
        }
    }

    private func continueWithoutCertificate(_ terminal: borrowing Terminal) -> ChallengeAnswer {
        terminal.show("Continuing without a certificate.\n")
        return .proceed
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
