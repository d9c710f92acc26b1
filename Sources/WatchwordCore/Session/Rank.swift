/// The rank of a credential among the credentials of its space. The first credential is the default until another is
/// preferred (SEMANTICS rule 18).
struct Rank: Sendable, Equatable {
    /// Set by the user's choice of a default.
    var isPreferred = false
    /// The position of the account, which increases with each new account. A new password has the position of the
    /// password that it replaces.
    let place: Int

    func precedes(_ other: Rank) -> Bool {
        isPreferred == other.isPreferred ? place < other.place : isPreferred
    }
}
