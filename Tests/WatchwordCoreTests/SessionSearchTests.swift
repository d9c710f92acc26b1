import Glibc
import Testing
import WatchwordProtocol

@testable import WatchwordCore

/// The session cache finds the same logins with its index as without (`PlainSearch`).
@Suite struct SessionSearchTests {
    private static let walks = getenv("WATCHWORD_WALKS").flatMap { UInt64(String(cString: $0)) }

    /// Eight caches, or 20 times `WATCHWORD_WALKS`.
    @Test(arguments: 0..<(walks.map { 20 * $0 } ?? 8))
    func theIndexFindsWhatASearchOfAllLoginsFinds(seed: UInt64) throws {
        var walk = SessionWalk(seed: seed)
        for _ in 0..<400 {
            walk.change()
            if walk.chance(1, of: 4) { walk.compare() }
        }
        #expect(walk.found > 20, "the random walk finds too little")
        walk.checkIndex()
    }

    /// Each of `many` logins is for another directory and realm, as on a server with many of them.
    @Test func fewLoginsAreLookedAt() throws {
        var cache = SessionCache(limits: SessionLimits(entries: 8 * 2048))
        for number in 0..<2048 {
            cache.remember(
                login("bob", "pw"), for: here.space(realm: "\(number)", .httpBasic), path: "/d\(number)/x", digest: nil,
                now: .zero)
        }
        let logins = cache.accepted[here]
        for path in ["/d7/page", "/d7/%20", "/d7", "/other/", "/d7/;x/a//b"] as [ExactText] {
            #expect(logins.positions(near: path).count <= 1, "\(path)")
        }
        #expect(logins.positions(near: "/%2525252525/").count == 2048, "no server decodes that often")
        #expect(logins.positions(in: ["7"]) == [7])
        #expect(cache.preemptiveEntry(at: here, path: "/d7/page", now: .zero)?.space.realm == "7")
    }

    @Test func anAcceptanceThatChangesNothingRenewsTheTimesOnly() throws {
        var cache = SessionCache()
        let (space, bob) = (here.space(realm: "r", .httpBasic), login("bob", "pw"))
        cache.remember(bob, for: space, path: "/a/x", digest: nil, now: .zero)
        let first = try #require(cache.accepted[here].first)
        cache.remember(bob, for: space, path: "/a/b/y", digest: nil, isProven: false, now: .seconds(3))
        let second = try #require(cache.accepted[here].first)
        #expect(second.entry === first.entry && second.lastUse == .seconds(3) && second.provenAt == .zero)
        cache.remember(bob, for: space, path: "/a/", digest: nil, sentAt: .seconds(4), now: .seconds(5))
        #expect(cache.accepted[here].first?.provenAt == .seconds(4))
        cache.remember(bob, for: space, path: "/b/", digest: nil, now: .seconds(6))
        let third = try #require(cache.accepted[here].first)
        #expect(third.entry !== first.entry && third.directories == ["/a/", "/b/"])
    }

    @Test func theSweepLooksAtLoginsWhenOneMayBeOver() {
        var cache = SessionCache(limits: SessionLimits(idle: .seconds(10), lifetime: .seconds(100)))
        var expiring = login("carol", "pw")
        expiring.expiresAt = .seconds(1000)
        cache.remember(login("bob", "pw"), for: here.space(realm: "r", .httpBasic), path: "/", digest: nil, now: .zero)
        cache.expire(now: .zero)
        cache.remember(expiring, for: here.space(realm: "s", .httpBasic), path: "/", digest: nil, now: .seconds(2))
        cache.expire(now: .seconds(9))
        #expect(cache.count == 2)
        cache.expire(now: .seconds(10))
        #expect(cache.count == 1)
        cache.wallTime = .seconds(1000)
        cache.expire(now: .seconds(11))
        #expect(cache.count == 0)
        _ = cache.give(login("bob", "pw"), for: SpacePattern(here.space(realm: "r", .httpBasic)), now: .seconds(11))
        cache.expire(now: .seconds(12))
        cache.limits.idle = .seconds(1)
        cache.expire(now: .seconds(13))
        #expect(cache.isEmpty)
    }
}

/// Random changes of a session cache with many logins of one server, and of a proxy.
private struct SessionWalk {
    private var random: SeededGenerator
    private var cache = SessionCache(limits: SessionLimits(entries: 4096, paths: 3, idle: .seconds(400)))
    private var now = Duration.zero
    private(set) var found = 0

    private static let places = [
        here, .proxy(ProxyEndpoint(type: .http, host: "p", port: 3128)),
        .server(Origin(scheme: .https, host: "h", port: 443)),
    ]
    private static let segments = [
        "a", "b", "v1", "inner", "%61", "%2e%2e", "..", ".", "", ";x", "a;x", "..;", "%2561", "a%2Fb", "x y", "é",
        "%2E",
        "b\\a", "%25252525252e", ".well-known",
    ]
    private static let users: [Account?] = [
        nil, nil, Account(user: "u0", domain: nil), Account(user: "u1", domain: nil),
    ]

    init(seed: UInt64) { random = SeededGenerator(seed: seed &* 7919 &+ 17) }

    mutating func chance(_ part: Int, of whole: Int) -> Bool { Int.random(in: 0..<whole, using: &random) < part }

    private mutating func one<Value>(of values: [Value]) -> Value {
        values[Int.random(in: values.indices, using: &random)]
    }

    /// Mostly of segments that few other paths have.
    private mutating func path() -> ExactText {
        var text = chance(1, of: 30) ? "" : "/"
        for _ in 0..<Int.random(in: 0..<4, using: &random) {
            text += chance(1, of: 2) ? "d\(Int.random(in: 0..<40, using: &random))" : one(of: Self.segments)
            if chance(4, of: 5) { text += "/" }
        }
        return ExactText(text)
    }

    private mutating func space(at challenger: Challenger) -> ProtectionSpace {
        let method = one(
            of: [.httpBasic, .httpBasic, .httpBasic, .httpBasic, .httpDigest, .bearer, .ntlm] as [AuthenticationMethod])
        let realm = chance(1, of: 30) ? nil : ExactText("r\(Int.random(in: 0..<60, using: &random))")
        return challenger.space(realm: realm, method)
    }

    private mutating func credential(for method: AuthenticationMethod?) -> LoginCredential {
        var credential = login("u\(Int.random(in: 0..<3, using: &random))", "p\(Int.random(in: 0..<2, using: &random))")
        if method == .bearer {
            credential = LoginCredential(form: .token, secret: secret("t\(Int.random(in: 0..<4, using: &random))"))
            credential.scope = BearerScope(one(of: [nil, "read", "read write"]))
        }
        if chance(1, of: 4) { credential.path = PathRange(path()).path.flatMap { $0 == "/" || $0 == "" ? nil : $0 } }
        if chance(1, of: 12) { credential.range.excluded = [path()] }
        if chance(1, of: 12) { credential.expiresAt = .seconds(Int.random(in: 0..<4000, using: &random)) }
        return credential
    }

    private mutating func owner() -> Partition? { chance(1, of: 4) ? .client(ClientTag(value: 1)) : nil }

    private mutating func digest(_ method: AuthenticationMethod) -> DigestChallenge? {
        guard method == .httpDigest else { return nil }
        let domains = ["", "\(path())", "\(path()) \(path())", "http://localhost\(path())", "http://elsewhere/ /a"]
        let domain = one(of: domains.filter { !$0.contains("\"") && !$0.contains("\\") })
        return digestChallenge(
            "realm=\"r\", nonce=\"\(Int.random(in: 0..<9, using: &random))\", qop=\"auth\", domain=\"\(domain)\"")
    }

    // MARK: Changes

    mutating func change() {
        now += .milliseconds(Int.random(in: 0..<2000, using: &random))
        cache.wallTime = now
        let place = one(of: Self.places + [here, here])
        switch Int.random(in: 0..<24, using: &random) {
        case 0..<12: remember(at: place)
        case 12..<16:
            var pattern = SpacePattern(space(at: place))
            if chance(1, of: 3) { pattern.realm = nil }
            if chance(1, of: 3) { pattern.authenticationMethod = nil }
            let given = credential(for: pattern.authenticationMethod)
            _ = cache.give(given, for: pattern, owner: owner(), now: now)
        case 16, 17: withLogin(at: place) { $0.withhold($1.credential, for: $1.space, owner: $1.owner, at: $2) }
        case 18:
            withLogin(at: place) { cache, login, _ in
                cache.doubt(login.credential, for: login.space, owner: login.owner)
            }
        case 19:
            withLogin(at: place) { cache, login, _ in
                cache.forget(login.credential, for: login.space, owner: login.owner, at: login.value.challenger)
            }
        case 20: withLogin(at: place) { [now] cache, login, _ in _ = cache.prefer(login.number, now: now) }
        case 21:
            let next = LoginCredential(form: .token, secret: secret("t\(Int.random(in: 0..<4, using: &random))"))
            if case .server(let origin) = place {
                cache.replace(TokenDigest(secret("t\(Int.random(in: 0..<4, using: &random))"), for: origin), with: next)
            }
        case 22: expire()
        default:  // The same login once more, mostly where it was accepted.
            let known = cache.accepted[place]
            guard !known.isEmpty else { return }
            let login = one(of: Array(known))
            let directory = login.directories.first ?? "/"
            cache.remember(
                login.credential, for: login.space, owner: login.owner,
                path: chance(1, of: 3) ? path() : "\(directory)x", digest: login.digest, now: now)
        }
    }

    private mutating func withLogin(
        at place: Challenger, _ change: (inout SessionCache, AcceptedLogin, ExactText) -> Void
    ) {
        let known = cache.accepted[place]
        if !known.isEmpty { change(&cache, one(of: Array(known)), path()) }
    }

    private mutating func remember(at place: Challenger) {
        let (space, owner, path) = (space(at: place), owner(), path())
        let credential = credential(for: space.authenticationMethod)
        let plain = PlainSearch(cache, at: place, owner, nil, path, now: now)
        let known = plain.login(replacedBy: credential, in: space)
        let before = cache.accepted[place]
        let position = known.flatMap { known in before.firstIndex { $0.number == known.number } }
        let isNews = cache.remember(
            credential, for: space, owner: owner, path: path, digest: digest(space.authenticationMethod), now: now)
        let after = cache.accepted[place]
        let written = position.flatMap { after.indices.contains($0) ? after[$0] : nil } ?? after.last
        #expect(written?.lastUse == now && written?.space == space && written?.owner == owner)
        #expect(after.count - before.count == (known == nil ? 1 : 0) || owner != nil)
        if known == nil { #expect(isNews) }
    }

    private mutating func expire() {
        cache.expire(now: now)
        for place in Self.places {
            #expect(cache.accepted[place].allSatisfy { cache.isValid($0, now) })
            #expect(cache.staged[place].allSatisfy { cache.isValid($0, now) })
        }
    }

    // MARK: Comparison

    mutating func compare() {
        let place = one(of: Self.places + [here])
        let (owner, user, path, space) = (owner(), one(of: Self.users), path(), space(at: place))
        let plain = PlainSearch(cache, at: place, owner, user, path, now: now)
        let preemptive = cache.preemptiveEntry(at: place, path: path, user: user, owner: owner, now: now)?.number
        #expect(preemptive == plain.preemptive(), "\(path)")
        let withheld = cache.withheldEntry(at: place, path: path, user: user, owner: owner, now: now)?.number
        #expect(withheld == plain.withheld(), "\(path)")
        let credential = credential(for: space.authenticationMethod)
        let isNarrower = cache.mayBeNarrower(
            than: credential, at: place, of: owner, user: user, path: path, now: now)
        #expect(isNarrower == plain.mayBeNarrower(than: credential), "\(path)")
        for scope in [nil, BearerScope("read")] {
            let known = cache.credential(
                for: space, user: user, owner: owner, at: place, path: path, scope: scope, now: now)
            #expect(known == plain.credential(for: space, scope: scope))
        }
        #expect(cache.doubtedCredential(for: space, user: user, owner: owner, now: now) == plain.doubted(in: space))
        let staged = cache.stagedCredential(for: space, user: user, owner: owner, path: path, now: now)
        #expect(staged == plain.stagedCredential(for: space))
        let choices = cache.choices(
            for: space, user: user, owner: owner, at: place, path: path, now: now
        ) { _ in true }
        #expect(choices.map(\.number) == plain.choices(for: space))
        let same = plain.logins(with: credential, in: space).first
        #expect(cache.provenAt(credential, for: space, owner: owner) == same?.provenAt)
        #expect(cache.digest(of: credential, for: space, owner: owner) == same?.digest)
        let isStaged = cache.staged[place].contains {
            $0.pattern.matches(space) && $0.credential.isSame(as: credential)
        }
        #expect(cache.wasStaged(credential, for: space) == isStaged)
        found += [preemptive, withheld, choices.first?.number].count { $0 != nil } + (isNarrower ? 1 : 0)
    }

    func checkIndex() {
        for place in Self.places {
            check(cache.accepted[place])
            check(cache.staged[place])
        }
    }

    private func check(_ logins: IndexedLogins<some IndexedLogin>) {
        for position in logins.indices {
            #expect(logins.positions(in: [logins[position].realm]).contains(position))
            for path in logins[position].paths { #expect(logins.positions(near: path).contains(position), "\(path)") }
        }
    }
}
