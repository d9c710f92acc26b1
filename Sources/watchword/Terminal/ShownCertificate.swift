import JSONText
import WatchwordProtocol

/// The certificate of a server, as `auth/challenge` describes it, in words.
struct ShownCertificate {
    private let leaf: JSON
    private let problems: [String]
    private let longHostNote: String?
    /// Of the public key, as the answer names it.
    let keyHash: String

    /// `nil` when the challenge shows none.
    init?(_ challenge: JSON) {
        let facts = challenge["protectionSpace"]?["serverTrust"]
        guard let leaf = facts?["chain"]?.elements?.first, let keyHash = leaf["spkiSha256"]?.string else { return nil }
        self.leaf = leaf
        self.keyHash = keyHash
        longHostNote = SpaceText.longHostNote(challenge)
        problems = (facts?["problems"]?.elements ?? []).compactMap(\.string)
    }

    /// No switch that was given beforehand decides about it.
    var isGrave: Bool {
        let grave: [ServerTrustFacts.Problem] = [.changed, .revoked]
        return grave.contains { problems.contains($0.rawValue) }
    }

    func text(site: String, problem: String?) -> String {
        var lines = ["", "\(site) shows a certificate that is not trusted:"]
        if let longHostNote { lines.append(longHostNote) }
        lines += problems.map { "  \(Self.sentence($0))" }
        if let problem { lines.append("  \(problem)") }
        let rows = [
            ["  Subject:", member("subject")], ["  Issuer:", member("issuer")],
            ["  Valid:", "from \(member("notBefore")) to \(member("notAfter"))"], ["  For:", names],
            ["  SHA-256:", Fingerprint.withColons(leaf["sha256"]?.string ?? "")],
            ["  of its key:", Fingerprint.withColons(keyHash)],
        ]
        lines.append(TextTable.text(rows))
        return lines.joined(separator: "\n") + "\n"
    }

    private func member(_ name: String) -> String {
        let text = leaf[name]?.string?.shortened ?? ""
        return text.isEmpty ? "(none)" : text
    }

    /// A certificate can have hundreds.
    private var names: String {
        let names = (leaf["subjectAltNames"]?.elements ?? []).compactMap { $0.string.map(DisplayURL.host) }
        let rest = names.count > 10 ? ["and \(names.count - 10) more"] : []
        return names.isEmpty ? "no name at all" : (names.prefix(10) + rest).joined(separator: ", ")
    }

    static func sentence(_ problem: String) -> String {
        switch ServerTrustFacts.Problem(rawValue: problem) {
        case .changed: "IT HAS ANOTHER KEY than the one that was accepted here: somebody may be in between."
        case .selfSigned: "It is its own issuer (self-signed): anybody can make one like it."
        case .untrustedIssuer: "Nobody who is trusted has issued it."
        case .expired: "It has expired."
        case .notYetValid: "It is not valid yet."
        case .hostMismatch: "It is for another host."
        case .revoked: "ITS ISSUER HAS REVOKED IT."
        case .weakKey: "Its key or its signature is too weak."
        case nil: problem.shortened
        }
    }
}
