internal import WatchwordProtocol

/// Whose part of what is remembered something is in; what is in nobody's part is everybody's.
enum Partition: Sendable, Hashable {
    /// Of one connection, and gone with it.
    case client(ClientTag)
    /// Of all connections of a program.
    indirect case subject(Subject)
    /// Only a line: for the questions about programs that are not told from others.
    case nameless
}

/// What a client may use of what is kept.
struct Access: Sendable, Equatable {
    /// On whose behalf it speaks; `nil` where everything may be used without a question.
    let subject: Subject?
    /// Where what it brings is remembered; `nil` for the part of all.
    let home: Partition?
    /// Where it may look, its own part first.
    let readable: [Partition?]
    /// Whom a grant is for. Of a program that is not told from others every connection counts by itself.
    let holder: GrantBook.Holder

    private static let everybodys: [Partition?] = [nil]

    init(_ subject: Subject?, client: ClientTag, sharing: FetchTable.Sharing) {
        let isAsked = sharing == .ask || subject?.isSandboxed == true
        self.subject = isAsked ? subject ?? .unknown : nil
        let isKnown = subject.map { $0.strength != .none } ?? false
        switch (sharing, subject) {
        case (.client, _): home = .client(client)
        case (_, let subject?) where subject.isSandboxed: home = isKnown ? .subject(subject) : .client(client)
        default: home = nil
        }
        readable = home == nil ? Self.everybodys : self.subject == nil ? [home] : [home, nil]
        holder = isAsked && isKnown ? subject.map { .subject($0) } ?? .client(client) : .client(client)
    }

    /// Where the certificates that it shows are remembered: for nobody else, where somebody has to be asked.
    var homeOfCertificates: Partition? { line }
    var readableForCertificates: [Partition?] { subject == nil ? [home] : [line, nil] }

    var isNameless: Bool { if case .client = holder { true } else { false } }

    /// Where what the keyring has is remembered: whoever may use it has it from there.
    var homeOfKeyring: Partition? { subject?.isSandboxed == true ? nil : home }

    /// With whom it shares questions and their answers; `nil` for everybody.
    var line: Partition? {
        guard subject != nil else { return home }
        return switch holder {
        case .client(let tag): .client(tag)
        case .subject(let subject): .subject(subject)
        }
    }
}
