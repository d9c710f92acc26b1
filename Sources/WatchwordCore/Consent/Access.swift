internal import WatchwordProtocol

/// A partition of the session cache and of other remembered state; `nil` means shared by all programs.
enum Partition: Sendable, Hashable {
    /// One connection; its partition is dropped when it closes.
    case client(ClientTag)
    /// All connections of a program.
    indirect case subject(Subject)
    /// A queue key for consent questions about unidentified programs; stores nothing.
    case unidentified
}

/// The access of one client to stored credentials.
struct Access: Sendable, Equatable {
    /// The program whose consent is checked; `nil` if the client needs no consent.
    let subject: Subject?
    /// The partition for credentials that the client supplies; `nil` for the shared one.
    let partition: Partition?
    /// The partitions to search, the client's own first.
    let readable: [Partition?]
    /// The holder of grants. Each connection of an unidentified program is a holder of its own.
    let holder: ConsentBook.Holder

    private static let shared: [Partition?] = [nil]

    init(_ subject: Subject?, client: ClientTag, sharing: FetchTable.Sharing) {
        let isAsked = sharing == .ask || subject?.isSandboxed == true  // guard: sandbox-asks-always
        self.subject = isAsked ? subject ?? .unknown : nil
        let isKnown = subject.map { $0.strength != .none } ?? false
        switch (sharing, subject) {
        case (.client, _): partition = .client(client)
        // guard: sandbox-part
        case (_, let subject?) where subject.isSandboxed: partition = isKnown ? .subject(subject) : .client(client)
        default: partition = nil
        }
        readable = partition == nil ? Self.shared : self.subject == nil ? [partition] : [partition, nil]
        holder = isAsked && isKnown ? subject.map { .subject($0) } ?? .client(client) : .client(client)
    }

    /// The partition for the client's TLS certificates, and for the certificates of servers that were accepted for it.
    /// Programs that need consent share neither.
    var certificatePartition: Partition? { sharingPartition }
    var readableForCertificates: [Partition?] { subject == nil ? [partition] : [sharingPartition, nil] }

    var isUnidentified: Bool { if case .client = holder { true } else { false } }

    /// The partition for credentials read from the keyring: the shared one for a sandboxed program, because any other
    /// program that may use the item can read it from the keyring as well.
    var keyringPartition: Partition? { subject?.isSandboxed == true ? nil : partition }

    /// The client, if it has a session of its own.
    var owner: ClientTag? { if case .client(let tag) = partition { tag } else { nil } }

    /// The partition whose clients share questions and answers; `nil` for all clients.
    var sharingPartition: Partition? {
        guard subject != nil else { return partition }
        return switch holder {
        case .client(let tag): .client(tag)
        case .subject(let subject): .subject(subject)
        }
    }
}
