/// Every bound of the broker, by name. Sizes are in bytes. A test reaches each one.
public enum Limits {
    /// One JSON-RPC message. Holds the largest inline body as base64 with room to spare.
    public static let messageBytes = 16 << 20
    /// Arrays and objects inside each other; no message of ours needs ten.
    public static let messageDepth = 64
    /// Values in one message: a flood of empty arrays costs at most some 20 MB once parsed.
    public static let messageValues = 1 << 18
    /// The header section of one `Content-Length` frame.
    public static let frameHeaderBytes = 4096
    /// Entries of one JSON-RPC batch.
    public static let batchEntries = 64
    /// Requests of one connection that have not been answered; room for a hundred open challenges and then some.
    public static let requestsInFlight = 256
    /// Bytes that wait for a client that does not read; then the connection is closed.
    public static let outgoingQueueBytes = 32 << 20
    /// A client that has taken less than `readerBytes` of what waits for it, and not all, in so long does not read; the
    /// connection is closed.
    public static let readerPause = Duration.seconds(60)
    public static let readerBytes = 64 << 10
    /// A message that was begun is to be there after so long, and a second more for each `messageBytesPerSecond` that have come.
    public static let messageTime = Duration.seconds(30)
    public static let messageBytesPerSecond = 16 << 10
    /// Messages in a row that are neither a request nor the answer to one; who is only late answers in time now and then.
    public static let senselessMessages = 1024
    /// Questions of the fetches of one connection that wait for an answer.
    public static let openChallenges = 128
    /// How long a program waits at a site after one cancelled question; twice as long after each further one, up to the second.
    public static let promptDelay = Duration.seconds(10)
    public static let longestPromptDelay = Duration.seconds(600)
    /// What was cancelled is forgotten when nothing was for so long.
    public static let promptMemory = Duration.seconds(3600)
    /// Programs and sites of which that is remembered.
    public static let promptRecords = 1024
    /// For so long the answer `cancel` of an agent counts for further fetches into the same protection space, and for how many
    /// spaces at most.
    public static let cancelMemory = Duration.seconds(10)
    public static let recentCancels = 1024
    /// Programs for which a person wants to be asked nothing any more.
    public static let stoppedPrograms = 256
    /// What a client or an agent may say that it takes at once.
    public static let pendingQuestions = 1...1024

    /// The response body that comes inline unless the fetch says otherwise.
    public static let defaultInlineBodyBytes = 1 << 20
    /// The most that a fetch may ask to get inline: as base64 it still fits a message.
    public static let inlineBodyBytes = 8 << 20
    /// The largest number that a size may be: the largest that every JSON library keeps exactly.
    public static let bodyBytes = 1 << 53
    /// Fetches in steps, and bodies to be read, of one connection.
    public static let openBodies = 64
    /// What one `fetch/read` returns at most.
    public static let readChunkBytes = 4 << 20

    /// A URL, as servers and proxies commonly take it.
    public static let urlBytes = 16 << 10
    /// The header fields that a client may add to one fetch, and all their bytes.
    public static let requestHeaderFields = 128
    public static let requestHeaderBytes = 64 << 10
    /// A user name or a password; the largest that real servers take is far below.
    public static let credentialBytes = 4096
    /// A token, or a header value that a client has made; servers take no larger header sections.
    public static let tokenBytes = 64 << 10
    /// A certificate with its chain and its key, as PEM.
    public static let certificateBytes = 256 << 10

    /// Stored credentials that one challenge lists.
    public static let knownUsers = 16

    /// Hosts that one subscription names.
    public static let subscriptionHosts = 64
    /// Agents at once; a desktop has one.
    public static let agents = 16
    /// Fetches that wait for their second half, over all clients, and of one process.
    public static let parkedFetches = 256
    public static let parkedFetchesOfProgram = 128

    /// Redirects of one fetch, unless it says otherwise, and at most.
    public static let defaultRedirects = 20
    public static let redirects = 50
    /// Authentication rounds of one fetch, over all schemes and targets.
    public static let authenticationRounds = 20
    /// Digest `stale=true` in a row that are answered; libcurl alone would go on for ever.
    public static let staleNonces = 2
    /// Of a ticket to another certificate, because the connection shows another one than the last.
    public static let channelChanges = 3
    /// Challenges in one response; more are not read.
    public static let challengesPerResponse = 32
    /// The authentication fields of one response together.
    public static let challengeHeaderBytes = 32 << 10
    /// A server's NTLM challenge (type 2 message); libcurl makes no larger answer, which repeats most of it.
    public static let ntlmChallengeBytes = 1024

    /// Time on the network for one fetch, unless it says otherwise, and at most. Waiting for an answer does not count.
    public static let defaultFetchTimeout = Duration.seconds(300)
    public static let fetchTimeout = Duration.seconds(86_400)
    /// How long a question waits for its answer.
    public static let challengeDeadline = Duration.seconds(120)
    /// For `fetch/approveRedirect`.
    public static let redirectApproval = Duration.seconds(30)
    /// How long a fetch waits for the question of another one; room for a client, an agent and the attempt.
    public static let turnWait = Duration.seconds(600)
    /// How long a credential that is under way keeps others from theirs.
    public static let verdictWait = Duration.seconds(60)
    /// A credential that the server has not accepted for so long is sent by one fetch first: passwords change.
    public static let acceptanceAge = Duration.seconds(10)
    /// How long a credential that was accepted before, and is under way again, keeps the next fetch from its own: shorter than
    /// `verdictWait`, for it is most likely right, and its response may just take long.
    public static let knownVerdictWait = Duration.seconds(5)

    /// Identities of connections at once: logins by NTLM or Negotiate, client certificates, trust exceptions; the one unused
    /// for longest goes first.
    public static let connectionIdentities = 64
    /// How long the broker keeps an identity with a password or passphrase in it after its last request.
    public static let secretIdentityIdle: Duration = .seconds(60)
    /// Trust exceptions, and client certificates, that are remembered for the session.
    public static let rememberedDecisions = 256
    /// What is remembered of consents, given and refused.
    public static let grants = 1024
    /// After nobody has answered whether something may be used, nobody is asked about it again for so long.
    public static let consentSilence: Duration = .seconds(60)

    /// Protection spaces in the session cache; the one unused for longest goes first.
    public static let sessionEntries = 256
    /// Paths remembered for one protection space.
    public static let sessionPaths = 64
    /// A session entry ends when it was not used for this long, and in any case after `sessionLifetime`, as gpg-agent's do.
    public static let sessionIdle = Duration.seconds(600)
    public static let sessionLifetime = Duration.seconds(7200)

    /// One call to the keyring; a window that it shows has its own limit.
    public static let keyringCall = Duration.seconds(5)
    /// How long a keyring that did not answer is left alone.
    public static let keyringPause = Duration.seconds(60)
    /// Descriptors that are left for everything but clients' connections, of `limit` in all: for connections to servers,
    /// while their names are looked up for two more each, for files, and for the keyring.
    public static func reservedDescriptors(of limit: Int) -> Int {
        min(limit / 2, 3 * serverConnections(descriptors: limit) + 64)
    }

    /// Connections to servers at once, where the process may have `limit` descriptors; further fetches wait for one of them.
    public static func serverConnections(descriptors limit: Int) -> Int { min(max(limit / 8, 8), 1024) }

    /// Wrong PINs in a row that a token is given, over all fetches; some tokens lock themselves at the third.
    public static let tokenPINTries = 2

    /// How long one reading of the netrc file may take.
    public static let netrcRead = Duration.seconds(5)
    /// The largest netrc file that is read.
    public static let netrcBytes = 1 << 20
    /// Items of the keyring that one look-up considers.
    public static let keyringItems = 64
}
