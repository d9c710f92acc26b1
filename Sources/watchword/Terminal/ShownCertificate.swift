import JSONText
import WatchwordProtocol

/// A description of a server certificate from `auth/challenge`, for a person.
struct ShownCertificate {
    private let leaf: JSON
    private let problems: [String]
    private let longHostNote: String?
    /// The hash of the public key, as in the answer.
    let keyHash: String

    /// Returns `nil` if the challenge has no certificate.
    init?(_ challenge: JSON) {
        let facts = challenge["protectionSpace"]?["serverTrust"]
        guard let leaf = facts?["chain"]?.elements?.first, let keyHash = leaf["spkiSha256"]?.string else { return nil }
        self.leaf = leaf
        self.keyHash = keyHash
        longHostNote = SpaceText.longHostNote(challenge)
        problems = (facts?["problems"]?.elements ?? []).compactMap(\.string)
    }

    /// Whether the user must decide even with `-k`.
    var requiresPrompt: Bool {
        let grave: [ServerTrustFacts.Problem] = [.changed, .revoked]
        return grave.contains { problems.contains($0.rawValue) }
    }

    func text(site: String, problem: String?) -> String {
        var lines = ["", "\(site) presents a certificate that is not trusted:"]
        if let longHostNote { lines.append(longHostNote) }
        lines += problems.map { "  \(Self.sentence($0, hasNames: !allNames.isEmpty))" }
        if let problem { lines.append("  \(problem)") }
        let rows = [
            ["  Subject:", member("subject")], ["  Issuer:", member("issuer")],
            ["  Valid:", "from \(time("notBefore")) to \(time("notAfter"))"], ["  Names:", names],
            ["  SHA-256:", Fingerprint.withColons(leaf["sha256"]?.string ?? "")],
            ["  Key SHA-256:", Fingerprint.withColons(keyHash)],
        ]
        lines.append(TextTable.text(rows))
        return lines.joined(separator: "\n") + "\n"
    }

    private func member(_ name: String) -> String {
        let text = leaf[name]?.string?.shortened ?? ""
        return text.isEmpty ? "(none)" : text
    }

    /// Returns a time in the time zone of the user.
    private func time(_ name: String) -> String {
        let moment = leaf[name]?.string.flatMap(UTCTime.rfc3339)
        return moment.map { LocalTime.text($0, hasMilliseconds: false) } ?? member(name)
    }

    private var allNames: [String] { (leaf["subjectAltNames"]?.elements ?? []).compactMap(\.string) }

    /// The first ten names; a certificate can have hundreds.
    private var names: String {
        let names = allNames.map(DisplayURL.host)
        let rest = names.count > 10 ? ["and \(names.count - 10) more"] : []
        return names.isEmpty ? "(none)" : (names.prefix(10) + rest).joined(separator: ", ")
    }

    /// - Parameter hasNames: whether the certificate names any host.
    static func sentence(_ problem: String, hasNames: Bool = true) -> String {
        switch ServerTrustFacts.Problem(rawValue: problem) {
        case .changed: "Its key has changed since it was accepted here: someone may be intercepting the connection."
        case .selfSigned: "It is self-signed: anyone can create such a certificate."
        case .untrustedIssuer: "No trusted authority has issued it."
        case .expired: "It has expired."
        case .notYetValid: "It is not valid yet."
        case .hostMismatch: hasNames ? "It is for another host." : "It does not name any host."
        case .revoked: "Its issuer has revoked it."
        case .weakKey: "Its key or its signature is too weak."
        case nil: problem.shortened
        }
    }
}

/// Formats of a SHA-256 fingerprint.
enum Fingerprint {
    /// Returns the fingerprint as `AB:CD:…`, as openssl and browsers show it.
    static func withColons(_ hexadecimal: String) -> String {
        guard let bytes = Hexadecimal.bytes(hexadecimal) else { return hexadecimal.shortened }
        return bytes.map { Hexadecimal.text([$0]).uppercased() }.joined(separator: ":")
    }

    /// Returns the fingerprint in the form of `--pinnedpubkey`; `nil` if `hexadecimal` is not hexadecimal.
    static func pin(_ hexadecimal: String) -> String? {
        Hexadecimal.bytes(hexadecimal).map { bytes in "sha256//" + bytes.withUnsafeBytes { Base64.encode($0) } }
    }
}
