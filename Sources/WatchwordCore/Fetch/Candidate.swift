internal import WatchwordProtocol

/// A credential that may be tried, and where it came from.
struct Candidate: Sendable, Equatable {
    var credential: LoginCredential
    var source: CredentialSource
    /// See `Attempt.item`.
    var item: String?
    /// See `Attempt.home`.
    var home: Partition?
    /// When the server last accepted it; `nil` where that is not known.
    var provenAt: Duration?
    /// Somebody has answered with it.
    var isAnswer = false
    /// Who has brought it, where it did not come from what is stored.
    var respondent: Respondent?
    /// When the login with it began, among what was forgotten by hand; `nil` before.
    var mark: ForgetLog.Mark?

    init(credential: LoginCredential, source: CredentialSource, item: String? = nil, home: Partition?) {
        self.credential = credential
        self.source = source
        self.item = item
        self.home = home
    }
}
