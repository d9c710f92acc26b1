internal import Glibc
internal import WatchwordCore
internal import WatchwordProtocol

/// The bounds of an engine. Sizes are in bytes, times in seconds unless their name says otherwise.
enum EngineLimits {
    /// The header section of a response, as curl's own tool allows.
    static let headerBytes = 300 << 10
    /// The body of a proxy's refusal to connect; the connection ends there. libcurl reads it byte by byte, to its end, and lets
    /// everybody wait meanwhile.
    static let refusedTunnelBodyBytes = 64 << 10
    /// Until the connection stands, TLS included.
    static let connectMilliseconds = 30_000
    /// Connections to one host at once; further transfers wait for one of them.
    static let connectionsPerHost = 64
    /// Connections to all hosts at once, by what the process may open; further transfers wait for one of them.
    static var connections: Int {
        var limit = rlimit()
        let isKnown = getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0
        return Limits.serverConnections(descriptors: isKnown ? Int(clamping: limit.rlim_cur) : 1024)
    }
    /// Connections that are kept when idle.
    static let keptConnections = 128
    /// A connection is not used any more when it is this old, so that a changed address is noticed.
    static let connectionLifetime = 3600
    /// The connections of an identity that nobody uses are closed after this time.
    static let identityIdleSeconds = 300
    /// The same where libcurl keeps a password together with the connection.
    static let loginIdleSeconds = 15
    /// Of a chain that is shown, and of the issuers that a server accepts: more are left out.
    static let shownCertificates = 20
    static let shownIssuers = 256
    /// A file with a client certificate or its key.
    static let certificateFileBytes = 1 << 20
    /// The rounds by which the keys of such a file are derived from its passphrase, together: a few seconds. OpenSSL's own files
    /// have 2048 for each key, careful ones a million.
    static let derivationRounds: UInt64 = 5_000_000
    /// Identities whose files, tokens or tickets are waited for at once; each has a thread that may hang.
    static let preparations = 64
    /// A body that is handed over complete, because it belongs to a response that asks for a log-in or leads elsewhere.
    /// Beyond `bodyBufferBytes` it is in a file.
    static let wholeBodyBytes = 64 << 20
    /// What is kept of a body that nobody takes; then the server has to wait.
    static let bodyBufferBytes = 1 << 20
    /// The copy of a request's body that may have to be sent again, in memory; the rest is in a file, within the client's quota.
    static let bodyCopyMemoryBytes = 1 << 20
    /// Left free by temporary files: one part in so many of the file system, but no more than so many bytes.
    static let diskReserveShare = 50
    static let diskReserveBytes = 256 << 20
    static let announcedBodyBytes = TransferRequest.announcedBodyBytes
    /// How long a body waits for whoever reads it, or writes it.
    static let readerIdleSeconds = 60
    /// What libcurl reads at once, of a body that is handed over on its way.
    static let streamedChunkBytes = 256 << 10
    /// What is collected of such a body before it is sent on; half of what a Unix socket takes by default.
    static let sentChunkBytes = 96 << 10
    /// The same of a body that is decompressed: libcurl undoes all of it at once, and keeps a thousand times as much if it has to
    /// wait.
    static let compressedChunkBytes = 2 << 10
    /// A server that sends nothing of such a body for so long is given up.
    static let stallSeconds = 300
}
