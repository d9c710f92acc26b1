import WatchwordProtocol

@testable import WatchwordCore

/// Checks that fields are parsed alike one by one and together, that a challenge equals those parsed from its printed and its raw
/// form, and that the text of a realm never becomes a challenge.
func checkChallenges(_ bytes: [UInt8]) throws {
    let fields = bytes.lines
    guard bytes.count < Limits.challengeHeaderBytes / 4 else { return }
    let challenges = ChallengeHeader.parse(fields: fields)
    let one = fields.flatMap { ChallengeHeader.parse(fields: [$0]) }
    try hold(challenges == Array(one.prefix(Limits.challengesPerResponse)), "\(challenges) together, \(one) one by one")
    for challenge in challenges {
        let again = ChallengeHeader.parse(fields: [challenge.raw])
        try hold(again == [challenge], "\(challenge) as the server wrote it is \(again)")
        var printed = ChallengeHeader.parse(fields: [challenge.printed])
        for index in printed.indices {
            // Printing loses the server's spelling.
            printed[index].raw = challenge.raw
            printed[index].hasUnquotedRealm = challenge.hasUnquotedRealm
        }
        try hold(printed == [challenge], "\(challenge) printed is \(printed)")
    }
    for field in fields {
        let read = ChallengeHeader.parse(fields: ["Basic realm=\(field.quoted), Digest"])
        try hold(
            read.map(\.scheme) == ["Basic", "Digest"] && read[0].realm == ExactText(field),
            "the realm \(field) is read as \(read)"
        )
    }
    try checkOffers(challenges)
}

private func checkOffers(_ challenges: [SchemeChallenge]) throws {
    let challenger = Challenger.server(Origin(scheme: .http, host: "h", port: 80))
    let offers = OfferList(challenges, by: challenger, allowed: nil, isReadable: true, SchemeRules())
    try hold(offers.offers.count == challenges.count, "the number of offers differs from that of challenges")
    try hold(
        zip(offers.answerable, offers.answerable.dropFirst()).allSatisfy { $0.strength >= $1.strength },
        "a weaker offer precedes a stronger one")
    let methods = offers.answerable.map(\.authenticationMethod)
    for forbidden in [AuthenticationMethod.ntlm, .negotiate, .bearer, .clientCertificate, .serverTrust] {
        try hold(!methods.contains(forbidden), "\(forbidden) is answered here")
    }
    let usable = challenges.filter { !$0.hasDuplicateParameters }
    try hold(offers.answerable.count <= usable.count, "a challenge that breaks the grammar is answered")
}

extension SchemeChallenge {
    fileprivate var printed: String {
        if let token68 { return "\(scheme) \(token68)" }
        guard !parameters.isEmpty else { return scheme }
        return "\(scheme) " + parameters.map { "\($0.name)=\($0.value.quoted)" }.joined(separator: ", ")
    }
}

extension String {
    /// The text as a quoted-string (RFC 9110 section 5.6.4).
    fileprivate var quoted: String {
        let escaped = utf8.flatMap { $0 == 0x22 || $0 == 0x5C ? [0x5C, $0] : [$0] }
        return "\"" + String(decoding: escaped, as: UTF8.self) + "\""
    }
}
