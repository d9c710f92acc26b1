internal import WatchwordProtocol

/// A credential that may be tried, and its source.
struct Candidate: Sendable, Equatable {
    var credential: LoginCredential
    var source: CredentialSource
    /// See `Attempt.item`.
    var item: String?
    /// See `Attempt.partition`.
    var partition: Partition?
    /// When the server last accepted the credential (monotonic time); `nil` if unknown.
    var provenAt: Duration?
    /// Whether a respondent's answer selected the credential.
    var isAnswer = false
    /// The respondent whose answer contained the credential; `nil` for any other source.
    var respondent: Respondent?
    /// How the fetch steered its connection when the credential was chosen.
    var steering: AuthenticationQueues.Steering?
    /// The state of the forget log when the login with this credential began; `nil` before.
    var mark: ForgetLog.Mark?

    init(credential: LoginCredential, source: CredentialSource, item: String? = nil, partition: Partition?) {
        self.credential = credential
        self.source = source
        self.item = item
        self.partition = partition
    }
}
