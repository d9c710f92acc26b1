import Testing
import WatchwordProtocol

@testable import WatchwordCore

/// SECURITY-RULES X4: the share of one server in each table is limited.
@Suite struct ChallengerTableTests {
    private let bob = login("bob", "pw")

    private func space(_ host: ExactText, _ realm: ExactText = "r") -> ProtectionSpace {
        ProtectionSpace(scheme: "https", host: host, port: 443, realm: realm, authenticationMethod: .httpBasic)
    }

    private func remember(_ space: ProtectionSpace, in cache: inout SessionCache, at second: Int) {
        cache.remember(bob, for: space, path: "/", digest: nil, now: .seconds(second))
    }

    private func isThere(_ space: ProtectionSpace, _ cache: SessionCache) -> Bool {
        cache.credential(for: space, at: Challenger(space), now: .seconds(310)) != nil
    }

    @Test("Rule X4: a server with many realms evicts no login of another server")
    func aServerWithManyRealmsEvictsNoOtherServer() {
        var cache = SessionCache()
        remember(space("good"), in: &cache, at: 0)
        for realm in 1...300 { remember(space("hostile", "\(realm)"), in: &cache, at: realm) }
        #expect(isThere(space("good"), cache))
        #expect(cache.count == 1 + AcceptedCredentials.share(of: Limits.sessionEntries))
        #expect(isThere(space("hostile", "300"), cache) && !isThere(space("hostile", "1"), cache))
    }

    @Test(arguments: [[], [0], [6], [1, 2, 5], Array(0..<7)])
    func matchingEntriesAreRemovedAndEachIsLookedAtOnce(numbers: [Int]) throws {
        var table = ChallengerTable<[Int]>()
        for number in 0..<7 { table.append(number, at: Challenger(space(number < 4 ? "a" : "b"))) }
        var seen: [Int] = []
        table.removeAll { number in
            seen.append(number)
            return numbers.contains(number)
        }
        #expect(seen.sorted() == Array(0..<7))
        #expect(table.all.sorted() == (0..<7).filter { !numbers.contains($0) } && table.count == 7 - numbers.count)
        #expect(table[Challenger(space("a"))] == (0..<4).filter { !numbers.contains($0) })
    }

    @Test func afterTheLimitWasLoweredEachAcceptanceEvictsOne() {
        var cache = SessionCache(limits: SessionLimits(entries: 10))
        for number in 0..<10 { remember(space("site\(number)"), in: &cache, at: number) }
        cache.limits.entries = 4
        for second in 10..<13 { remember(space("site0"), in: &cache, at: second) }
        #expect(cache.count == 7)
        for second in 13..<30 { remember(space("site0"), in: &cache, at: second) }
        #expect(cache.count == 4 && isThere(space("site0"), cache))
    }

    @Test func aFullTableEvictsFromTheServerWithTheMostEntries() {
        var cache = SessionCache(limits: SessionLimits(entries: 20))
        for number in 0..<10 { remember(space("site\(number)"), in: &cache, at: number) }
        for realm in 1...15 { remember(space("hostile", "\(realm)"), in: &cache, at: 10 + realm) }
        #expect((0..<10).allSatisfy { isThere(space("site\($0)"), cache) })
        #expect(cache.count == 20)
    }

    @Test func amongEqualServersTheOneThatGrewLeastRecentlyLosesItsOldestEntry() {
        var table = ChallengerTable<[Int]>()
        let hosts = ["first", "second", "third"].map { Challenger(space($0)) }
        var dropped: [Int?] = []
        for number in 0..<8 { dropped.append(table.append(number, at: hosts[number % 3], limit: 6)) }
        #expect(dropped == [nil, nil, nil, nil, nil, nil, 0, 1])
        #expect(hosts.map { table[$0] } == [[3, 6], [4, 7], [2, 5]])
        #expect(table.count == 6 && table.all.sorted() == [2, 3, 4, 5, 6, 7])
    }

    @Test func aServerHasAShareOfATableThatIsNotFull() {
        var table = ChallengerTable<[Int]>()
        let host = Challenger(space("hostile"))
        for number in 0..<300 { table.append(number, at: host, limit: 1024) }
        #expect(table[host] == Array(172..<300) && table.count == 128)
    }

    @Test func refusalsCountForFetchesThatReachTheSameServer() {
        var log = RefusalLog()
        let steering = AuthenticationQueues.Steering(proxy: nil, exceptionalKey: [1])
        let key = AuthenticationQueues.Key(
            space: space("good"), purpose: .find, usesStorage: false, steering: steering)
        log.record(bob, .agent, in: key)
        #expect(log.hasRefused(bob, in: space("good"), steering, since: 0))
        #expect(!log.hasRefused(bob, in: space("good"), nil, since: 0))
    }

    @Test func aChallengerWithoutEntriesTakesNoPlace() {
        var table = ChallengerTable<[Int]>()
        let (one, other) = (Challenger(space("one")), Challenger(space("other")))
        table.append(1, at: one)
        table[one].removeAll { $0 == 1 }
        table[other].removeAll { _ in true }
        #expect(table.isEmpty && table[one] == [] && table[other] == [])
        table.append(2, at: one)
        table.append(3, at: other)
        table.removeAll { $0 == 2 }
        table.changeAll { $0 += 1 }
        #expect(table.count == 1 && Array(table.all) == [4])
    }

    @Test("Rule X4: each origin has a share of the credentials stored by hand")
    func providedCredentialsHaveShares() {
        var cache = SessionCache()
        _ = cache.give(bob, for: SpacePattern(space("good")), now: .zero)
        for realm in 1...300 { _ = cache.give(bob, for: SpacePattern(space("hostile", "\(realm)")), now: .zero) }
        #expect(cache.stagedCredential(for: space("good"), user: nil, now: .zero) != nil)
    }

    @Test("Rule X4: each origin has a share of the nonces")
    func noncesHaveShares() throws {
        var nonces = DigestNonces()
        let (good, hostile) = (Challenger(space("good")), Challenger(space("hostile")))
        let first = try #require(digestChallenge("realm=\"r\", nonce=\"first\", qop=\"auth\""))
        _ = nonces.nextResponse(to: first, at: good, clientNonce: "c")
        for number in 1...1100 {
            _ = nonces.nextResponse(to: first.followed(by: "\(number)"), at: hostile, clientNonce: "c")
        }
        #expect(nonces.remembers(first, at: good))
    }

    @Test("Rule X4: each origin has a share of the refusals")
    func refusalsHaveShares() {
        var log = RefusalLog()
        var record = KeyringRecord(isEnabled: true)
        for (index, host) in (["good"] + Array(repeating: "hostile", count: 300) as [ExactText]).enumerated() {
            let space = space(host, "\(index)")
            let key = AuthenticationQueues.Key(space: space, purpose: .find, usesStorage: true)
            log.record(bob, .keyring, in: key)
            record.recordRefusal(of: bob, in: space, now: .zero)
        }
        #expect(log.since(0, at: Challenger(space("good"))).count == 1)
        #expect(record.hasRefused(bob, in: space("good", "0"), now: .zero))
    }
}
