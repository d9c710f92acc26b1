/// The limits of the broker. Sizes are in bytes. A test reaches each limit.
public enum Limits {
    /// Size of one JSON-RPC message: the largest inline body as base64, with room to spare.
    public static let messageBytes = 16 << 20
    /// Nesting depth of arrays and objects; no message of this protocol needs ten levels.
    public static let messageDepth = 64
    /// Values in one message. This bounds the memory for a parsed message of empty arrays to about 20 MB.
    public static let messageValues = 1 << 18
    /// Size of the header section of one `Content-Length` frame.
    public static let frameHeaderBytes = 4096
    /// Entries of one JSON-RPC batch.
    public static let batchEntries = 64
    /// Unanswered requests of one connection; leaves room for more than a hundred open challenges.
    public static let requestsInFlight = 256
    /// Bytes queued for a client that does not read; above this the connection is closed.
    public static let outgoingQueueBytes = 32 << 20
    /// Period in which a client must read at least `readerBytes` of its queued output, or all of it. A client that does not is
    /// disconnected.
    public static let readerPause = Duration.seconds(60)
    public static let readerBytes = 64 << 10
    /// Time for a partial message to become complete, plus one second for each `messageBytesPerSecond` received of it.
    public static let messageTime = Duration.seconds(30)
    public static let messageBytesPerSecond = 16 << 10
    /// Consecutive messages that are neither a request nor the reply to an open one; above this the connection is closed. A
    /// client that is merely late also sends some replies in time, which resets the count.
    public static let invalidMessages = 1024
    /// Open challenges of the fetches of one connection.
    public static let openChallenges = 128
    /// Delay before a program may prompt again for a site after a cancelled prompt. It doubles with each further cancel, up to
    /// `longestPromptDelay`.
    public static let promptDelay = Duration.seconds(10)
    public static let longestPromptDelay = Duration.seconds(600)
    /// Time after the end of a delay until its cancels are forgotten.
    public static let promptMemory = Duration.seconds(3600)
    /// Records of cancels: one for each program and site, and one for each program.
    public static let promptRecords = 1024
    /// Time for which an agent's answer `cancel` also applies to the same question of further fetches, and the number
    /// of questions for which it is remembered.
    public static let cancelMemory = Duration.seconds(10)
    public static let recentCancels = 1024
    /// Programs whose prompts a person has stopped.
    public static let stoppedPrograms = 256
    /// Size of the text of a program's prompt (`prompt/ask`); enough for all the lines that askpass shows.
    public static let promptTextBytes = 256 << 10
    /// Range of `maxPending`, the number of simultaneous questions that a client or an agent accepts.
    public static let pendingQuestions = 1...1024

    /// Default for the largest response body that is returned inline.
    public static let defaultInlineBodyBytes = 1 << 20
    /// Largest `maxInlineBodyBytes` that a fetch may request: as base64 the body still fits a message.
    public static let inlineBodyBytes = 8 << 20
    /// Largest value of a size: every JSON library represents integers up to this one exactly.
    public static let bodyBytes = 1 << 53
    /// Stepwise fetches (`fetch/start`) and unread bodies of one connection, together.
    public static let openBodies = 64
    /// Most bytes that one `fetch/read` returns.
    public static let readChunkBytes = 4 << 20

    /// Size of a URL, as servers and proxies commonly accept it.
    public static let urlBytes = 16 << 10
    /// Header fields that a client may add to one fetch, and their total size.
    public static let requestHeaderFields = 128
    public static let requestHeaderBytes = 64 << 10
    /// Size of a user name or a password; real servers accept far less.
    public static let credentialBytes = 4096
    /// Size of a token, or of a header value that a client provides; servers accept no larger header sections.
    public static let tokenBytes = 64 << 10
    /// Size of a certificate with its chain and its key, as PEM.
    public static let certificateBytes = 256 << 10

    /// Stored credentials in `knownUsers` of one challenge.
    public static let knownUsers = 16

    /// Host patterns of one subscription.
    public static let subscriptionHosts = 64
    /// Agents registered at the same time; a desktop has one.
    public static let agents = 16

    /// Redirects of one fetch: the default, and the largest `maxRedirects`.
    public static let defaultRedirects = 20
    public static let redirects = 50
    /// Authentication rounds of one fetch, for all schemes and targets together.
    public static let authenticationRounds = 20
    /// Consecutive Digest challenges with `stale=true` that are answered; libcurl itself has no limit.
    public static let staleNonces = 2
    /// Channel rebindings of one login: retries with a ticket bound to another certificate, because the new connection shows a
    /// different one.
    public static let channelChanges = 3
    /// Challenges of one response that are parsed; further ones are ignored.
    public static let challengesPerResponse = 32
    /// Total size of the authentication fields of one response.
    public static let challengeHeaderBytes = 32 << 10
    /// Size of a server's NTLM challenge (type 2 message). libcurl limits the size of the reply, which repeats most of the
    /// challenge.
    public static let ntlmChallengeBytes = 1024

    /// Network time of one fetch: the default, and the largest `timeoutMs`. Waiting for the answer to a challenge does not
    /// count.
    public static let defaultFetchTimeout = Duration.seconds(300)
    public static let fetchTimeout = Duration.seconds(86_400)
    /// Time to answer a challenge.
    public static let challengeDeadline = Duration.seconds(120)
    /// Time to answer `fetch/approveRedirect`.
    public static let redirectApproval = Duration.seconds(30)
    /// Time for which a fetch waits for another fetch's prompt; enough for a client, an agent and the attempt.
    public static let leaseWait = Duration.seconds(600)
    /// Requests with one credential that may be without a verdict when a burst of fetches begins (SEMANTICS rule 22).
    public static let unprovenAttempts = 3
    /// Time for which a fetch waits for the verdict on a credential that another fetch has sent, until it sends the
    /// credential itself: for one that this session has not seen accepted, and for one that it has, which is most likely
    /// right.
    public static let verdictWait = Duration.seconds(5)
    public static let knownVerdictWait = Duration.seconds(2)
    /// Time after which a single fetch tries a credential first, because passwords change.
    public static let acceptanceAge = Duration.seconds(2)
    /// The shortest pause between acceptances after which a burst of fetches counts as over.
    public static let shortestAcceptancePause = Duration.milliseconds(50)
    /// Time without an acceptance after which a burst of fetches counts as over if few of them are under way.
    public static let pauseBetweenRequests = Duration.milliseconds(5)
    /// Time for which a request counts that ended before its response, because the server may yet check its credential. For
    /// one that this session has seen accepted it is `knownVerdictWait`.
    public static let lostVerdictMemory = Duration.seconds(10)
    /// Requests to one server that may be under way with one credential: as many as there are connections, and on
    /// multiplexed ones.
    public static let requestsWithOneLogin = 64
    public static let multiplexedRequestsWithOneLogin = 1024
    /// Credentials that are remembered only because a request with them has ended without a verdict.
    public static let idleAttemptWindows = 256
    /// Time after which a login of a connection is made again on a new connection, because an old one shows nothing.
    public static let connectionAge = Duration.seconds(10)
    /// Time after which a fetch that waits for a response passes its leases on.
    public static let leaseOfSlowResponse = Duration.seconds(60)

    /// Connection identities at the same time: logins by NTLM or Negotiate, logins for tunnels of proxies, client
    /// certificates, trust exceptions. The least recently used one is dropped first.
    public static let connectionIdentities = 64
    /// Time after its last request for which an identity with a password or passphrase remains in memory.
    public static let secretIdentityIdle: Duration = .seconds(60)
    /// Remembered trust exceptions, including permanent ones. The same limit applies separately to client certificates.
    public static let rememberedDecisions = 256
    /// Recorded grants and denials of consent.
    public static let grants = 1024
    /// Time for which an unanswered consent question is not asked again.
    public static let consentCooldown: Duration = .seconds(60)

    /// Accepted credentials in the session cache; the least recently used one is dropped first. The same limit applies
    /// separately to staged ones.
    public static let sessionEntries = 256
    /// Directories remembered for one credential of the session cache.
    public static let sessionPaths = 64
    /// A session entry expires after `sessionIdle` without use, and after `sessionLifetime` in any case, as in gpg-agent.
    public static let sessionIdle = Duration.seconds(600)
    public static let sessionLifetime = Duration.seconds(7200)

    /// Time for one keyring call; prompts of the keyring have their own limit.
    public static let keyringCall = Duration.seconds(5)
    /// Time for which a keyring that timed out, or that cannot encrypt secrets on the bus, is not called again.
    public static let keyringPause = Duration.seconds(60)
    /// Returns how many of `limit` descriptors are reserved for everything except client connections: files, the
    /// keyring, and connections to servers, each of which needs two more descriptors during name resolution.
    public static func reservedDescriptors(of limit: Int) -> Int {
        min(limit / 2, 3 * serverConnections(descriptors: limit) + 64)
    }

    /// Returns the limit of simultaneous connections to servers for a process with `limit` descriptors. Further fetches
    /// wait for a free connection.
    public static func serverConnections(descriptors limit: Int) -> Int { min(max(limit / 8, 8), 1024) }

    /// Consecutive wrong PINs sent to a token, over all fetches; some tokens lock themselves at the third.
    public static let tokenPINTries = 2

    /// Time to read the netrc file once.
    public static let netrcRead = Duration.seconds(5)
    /// The time to connect to a proxy, if there is another one to try.
    public static let upstreamConnect = Duration.seconds(10)
    /// The time that a PAC file may take to choose a proxy.
    public static let scriptEvaluation = Duration.seconds(2)
    /// The time after which an evaluation is repeated where it does not delay others.
    public static let quickScriptEvaluation = Duration.milliseconds(300)
    /// The time after which a waiting evaluation fails, because others take too long.
    public static let scriptQueue = Duration.seconds(6)
    /// Time for a configured command to print a password. A person may have to unlock a key for it.
    public static let credentialCommand = Duration.seconds(30)
    /// Configured commands that run at the same time.
    public static let credentialCommands = 4
    /// Size of the largest netrc file that is read.
    public static let netrcBytes = 1 << 20
    /// Size of the largest file with the secret of an OAuth client. Secrets of 64 characters are usual; signed ones are longer.
    public static let clientSecretBytes = 4 << 10
    /// Length of a client id. Those of dynamic registration can be signed documents.
    public static let oauthClientIDBytes = 1 << 10
    /// Keyring items that one lookup considers.
    public static let keyringItems = 64
}
