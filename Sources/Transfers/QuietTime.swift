/// After how long without an event libcurl is asked again, while transfers run: ever longer, but never for long.
///
/// libcurl 7.88.1 sometimes has something for one stream of an HTTP/2 connection, does not go on with it, and waits for a socket on
/// which nothing more comes: of bursts of a hundred transfers every fiftieth stood still until the next timer, half a minute later.
/// Being asked again helps.
struct QuietTime {
    private static let shortest: Int32 = 10
    private static let longest: Int32 = 1000

    private var rounds: Int32 = 0

    /// In milliseconds.
    var limit: Int32 { min(Self.shortest << rounds, Self.longest) }

    mutating func slept(somethingHappened: Bool) { rounds = somethingHappened ? 0 : min(rounds + 1, 7) }
}
