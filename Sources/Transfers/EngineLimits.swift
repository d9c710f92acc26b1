internal import Glibc
internal import WatchwordCore
internal import WatchwordProtocol

/// The limits of an engine. Sizes are in bytes, times in seconds unless their name says otherwise.
enum EngineLimits {
    /// The header section of a response. Later versions of libcurl enforce the same limit.
    static let headerBytes = 300 << 10
    /// The body of a proxy's refusal of CONNECT; a transfer with a larger one is aborted. libcurl reads such a body byte by
    /// byte to its end, and blocks the other transfers meanwhile.
    static let refusedTunnelBodyBytes = 64 << 10
    /// The time to connect, including the TLS handshake.
    static let connectMilliseconds = 30_000
    /// Concurrent connections to one host; further transfers wait for one of them.
    static let connectionsPerHost = 64
    /// Concurrent connections to all hosts, derived from RLIMIT_NOFILE; further transfers wait for one of them.
    static var connections: Int {
        var limit = rlimit()
        let isKnown = getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0
        return Limits.serverConnections(descriptors: isKnown ? Int(clamping: limit.rlim_cur) : 1024)
    }
    /// Idle connections in the cache.
    static let cachedConnections = 128
    /// The age after which a connection is not used again, so that a changed address takes effect.
    static let connectionLifetime = 3600
    /// The time after which idle connections of an identity are closed.
    static let identityIdleSeconds = 300
    /// The same time for connections with which libcurl stores a password.
    static let loginIdleSeconds = 15
    /// The maximum number of certificates of a chain, and of issuers accepted by a server, that are reported.
    static let shownCertificates = 20
    static let shownIssuers = 256
    /// The largest file with a client certificate or its key.
    static let certificateFileBytes = 1 << 20
    /// The total number of rounds to derive the keys of such a file from its passphrase, which takes a few seconds. OpenSSL
    /// writes files with 2048 rounds for each key; other tools use up to a million.
    static let derivationRounds: UInt64 = 5_000_000
    /// Identities with a preparation (file, token, ticket) in progress; each has a thread that may hang.
    static let preparations = 64
    /// The cookies of one fetch and port; libcurl reads 50 of one response.
    static let cookies = 100
    /// The field `Cookie`, a little below libcurl's own limit.
    static let cookieFieldBytes = 8000
    /// The largest body that is delivered complete, which the body of a challenge or a redirect always is.
    static let wholeBodyBytes = 64 << 20
    /// See `TransferOptions.awaitsBody`: the time after which a response is delivered without its body, and the announced length up
    /// to which a body that has begun to arrive is awaited.
    static let awaitedBodyTime = Duration.milliseconds(20)
    static let awaitedBodyBytes = 64 << 10
    /// The buffered part of a body that its reader has not taken; at this size the transfer pauses.
    static let bodyBufferBytes = 1 << 20
    /// The largest copy of a body in memory. A larger copy is in a file, within the client's quota.
    static let bodyCopyMemoryBytes = 1 << 20
    /// The space that temporary files leave free: 1/`diskReserveShare` of the file system, at most `diskReserveBytes`.
    static let diskReserveShare = 50
    static let diskReserveBytes = 256 << 20
    /// The time that a body waits for its reader or its writer.
    static let readerIdleSeconds = 60
    /// libcurl's buffer for a body that is streamed, in either direction.
    static let streamedChunkBytes = 256 << 10
    /// libcurl's buffer for a body through a front.
    static let frontChunkBytes = 16 << 10
    /// The bytes of a streamed body that are collected before they are sent to the reader; about half of a Unix socket's
    /// default buffer.
    static let sentChunkBytes = 96 << 10
    /// The smallest buffer of libcurl for a body with a limited rate.
    static let pacedChunkBytes = 2 << 10
    /// The time after which the body of a challenge or a redirect is not waited for.
    static let intermediateBodySeconds = 2
    /// The time without any byte of a streamed body after which the transfer fails.
    static let stallSeconds = 300
}
