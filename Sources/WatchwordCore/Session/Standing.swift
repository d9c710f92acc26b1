/// Where a credential stands among those of its space: the first is the default, until another one is preferred (semantics rule 18).
struct Standing: Sendable, Equatable {
    /// Chosen as the default by hand.
    var isPreferred = false
    /// Rises with each account that comes; a newer password has that of the one which it replaces.
    let place: Int

    func precedes(_ other: Standing) -> Bool {
        isPreferred == other.isPreferred ? place < other.place : isPreferred
    }
}
