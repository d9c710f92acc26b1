import Testing

@testable import WatchwordCore
@testable import WatchwordProtocol

@Suite struct SessionCacheTests {
    private let bob = LoginCredential(user: "bob", password: secret("one"))
    private let newer = LoginCredential(user: "bob", password: secret("two"))

    private func space(_ realm: ExactText, _ method: AuthenticationMethod = .httpBasic) -> ProtectionSpace {
        ProtectionSpace(scheme: "http", host: "h", port: 80, realm: realm, authenticationMethod: method)
    }

    private func url(_ path: ExactText) throws -> FetchURL { try FetchURL("http://h\(path)") }

    private func cache(_ entries: (ExactText, ExactText)..., limits: SessionLimits = SessionLimits()) throws
        -> SessionCache
    {
        var cache = SessionCache(limits: limits)
        for (realm, path) in entries {
            cache.remember(bob, for: space(realm), at: try url(path), digest: nil, now: .zero)
        }
        return cache
    }

    @Test("Rule M1: a secret that cannot be locked in memory is not remembered")
    func aSecretThatCannotBeLockedInMemoryIsNotRemembered() throws {
        let unlocked = Secret(capacity: 3, in: SecretMemory(lock: { _, _ in false })) { block in
            block.copyBytes(from: "one".utf8)
            return 3
        }
        var cache = SessionCache()
        let isNews = cache.remember(
            LoginCredential(user: "bob", password: unlocked), for: space("r"), at: try url("/"), digest: nil, now: .zero
        )
        #expect(!isNews && cache.count == 0)
        #expect(unlocked == secret("one"))
    }

    /// RFC 7617 section 2.2, with its own examples.
    @Test(
        "Rule B5: Basic is sent before a challenge only below the accepted path up to its last slash",
        arguments: [
            ("/docs/", true), ("/docs/test.doc", true), ("/docs/?page=1", true), ("/other/", false), ("/docs", false),
            ("/docsx/", false), ("/docs/../other/", false),
        ])
    func basicIsPreemptiveAtAndBelowTheDirectory(path: ExactText, isInside: Bool) throws {
        let cache = try cache(("r", "/docs/index.html"))
        #expect((cache.preemptiveEntry(for: try url(path), now: .zero) != nil) == isInside)
    }

    @Test("Rule 29: a token of another realm does not take the place of one without a known scope")
    func aTokenOfAnotherRealmDoesNotMatter() throws {
        func token(_ text: String, _ scope: String?) -> LoginCredential {
            var token = LoginCredential(form: .token, secret: secret(text), persistence: .forSession)
            token.scope = BearerScope(scope)
            return token
        }
        var cache = SessionCache()
        let (here, there) = (space("here", .bearer), space("there", .bearer))
        cache.remember(token("plain", nil), for: here, at: try url("/"), digest: nil, now: .zero)
        cache.remember(token("wide", "read"), for: there, at: try url("/"), digest: nil, now: .zero)
        let found = cache.credential(for: here, at: Challenger(here), scope: BearerScope("read"), now: .zero)
        #expect(found?.secret == secret("plain"))
    }

    @Test func anotherOriginHasNoEntry() throws {
        let cache = try cache(("r", "/"))
        for other in ["https://h/", "http://h:81/", "http://h.x/"] {
            #expect(cache.preemptiveEntry(for: try FetchURL(other), now: .zero) == nil)
        }
    }

    @Test("Rule 16: the longest path wins")
    func theLongestPathWins() throws {
        let cache = try cache(("outer", "/"), ("inner", "/a/b/"), ("middle", "/a/"))
        #expect(cache.preemptiveEntry(for: try url("/a/b/c"), now: .zero)?.space.realm == "inner")
        #expect(cache.preemptiveEntry(for: try url("/a/c"), now: .zero)?.space.realm == "middle")
        #expect(cache.preemptiveEntry(for: try url("/c"), now: .zero)?.space.realm == "outer")
    }

    @Test("Rule 16: the longest path wins in each of its forms, and none if a server may read the path differently")
    func theLongestPathWinsInEachForm() throws {
        for method in [AuthenticationMethod.httpBasic, .httpDigest] {
            var cache = SessionCache()
            for (realm, path) in [("outer", "/v%31/x"), ("inner", "/v1/inner/x")] as [(ExactText, ExactText)] {
                cache.remember(bob, for: space(realm, method), at: try url(path), digest: nil, now: .zero)
            }
            for (path, realm) in [
                ("/v1/y", "outer"), ("/v1/inner/y", "inner"), ("/v1/%69nner/y", "inner"), ("/%761/./inner/y", "inner"),
                ("/v1/%2569nner/y", nil), ("/v1//inner/y", nil), ("/v1/inner;a/y", nil), ("/v1%2Finner/y", nil),
                ("/v1/innery", "outer"), ("/v1/a%2Fb", "outer"),
            ] as [(ExactText, ExactText?)] {
                let found = cache.preemptiveEntry(for: try url(path), now: .zero)?.space.realm
                #expect(found == realm, "\(method) \(path)")
            }
        }
    }

    @Test func aLoginOfTheWholeServerIsNotSentWhereHiddenSegmentsMayLeadToAnotherRealm() throws {
        let cache = try cache(("outer", "/x"), ("inner", "/v1/inner/x"))
        for (path, isSent) in [("/x/..%2Fv1/inner/y", false), ("/v1/..;/v1/inner/y", false), ("/x/..%2Fv2/y", true)] {
            #expect((cache.preemptiveEntry(for: try url(ExactText(path)), now: .zero) != nil) == isSent, "\(path)")
        }
    }

    @Test("Rule 16: Digest is sent before a challenge to the whole server")
    func digestIsGoodForTheWholeServer() throws {
        var cache = SessionCache()
        cache.remember(bob, for: space("r", .httpDigest), at: try url("/a/b"), digest: nil, now: .zero)
        #expect(cache.preemptiveEntry(for: try url("/elsewhere"), now: .zero) != nil)
    }

    @Test("Rule 19: realms and methods have separate credentials")
    func spacesAreSeparate() throws {
        let cache = try cache(("r", "/"))
        let origin = try url("/").origin
        #expect(cache.credential(for: space("r"), at: origin, now: .zero) == bob)
        #expect(cache.credential(for: space("R"), at: origin, now: .zero) == nil)
        #expect(cache.credential(for: space("r", .httpDigest), at: origin, now: .zero) == nil)
    }

    @Test("Rules 17 and R20: only the refused value is forgotten")
    func onlyTheRefusedValueIsForgotten() throws {
        var cache = try cache(("r", "/"))
        let origin = try url("/").origin
        cache.remember(newer, for: space("r"), at: try url("/"), digest: nil, now: .zero)
        cache.forget(bob, for: space("r"), at: origin)
        #expect(cache.credential(for: space("r"), at: origin, now: .zero) == newer)
        cache.forget(newer, for: space("r"), at: origin)
        #expect(cache.credential(for: space("r"), at: origin, now: .zero) == nil)
        #expect(cache.count == 0)
    }

    @Test func entriesEndAfterAnIdleTimeAndAfterAHardLimit() throws {
        let limits = SessionLimits(idle: .seconds(10), lifetime: .seconds(25))
        var cache = try cache(("r", "/"), limits: limits)
        let place = try url("/")
        #expect(cache.preemptiveEntry(for: place, now: .seconds(9)) != nil)
        #expect(cache.preemptiveEntry(for: place, now: .seconds(10)) == nil)
        cache.remember(bob, for: space("r"), at: place, digest: nil, now: .seconds(9))
        #expect(cache.preemptiveEntry(for: place, now: .seconds(18)) != nil)
        cache.remember(bob, for: space("r"), at: place, digest: nil, now: .seconds(18))
        #expect(cache.preemptiveEntry(for: place, now: .seconds(24)) != nil)
        #expect(cache.preemptiveEntry(for: place, now: .seconds(25)) == nil)
        cache.expire(now: .seconds(25))
        #expect(cache.count == 0)
    }

    @Test func isBoundedAndDropsTheLeastRecentlyUsed() throws {
        var cache = SessionCache(limits: SessionLimits(entries: 3, paths: 2))
        for (second, realm) in (["a", "b", "c"] as [ExactText]).enumerated() {
            cache.remember(bob, for: space(realm), at: try url("/\(realm)/"), digest: nil, now: .seconds(second))
        }
        cache.remember(bob, for: space("a"), at: try url("/a/"), digest: nil, now: .seconds(3))
        cache.remember(bob, for: space("d"), at: try url("/d/"), digest: nil, now: .seconds(4))
        #expect(cache.count == 3)
        #expect(cache.preemptiveEntry(for: try url("/b/"), now: .seconds(4)) == nil)
        for path in ["/a/", "/c/", "/d/"] as [ExactText] {
            #expect(cache.preemptiveEntry(for: try url(path), now: .seconds(4)) != nil)
        }
        for path in ["/1/", "/2/", "/3/"] as [ExactText] {
            cache.remember(bob, for: space("a"), at: try url(path), digest: nil, now: .seconds(5))
        }
        #expect(cache.preemptiveEntry(for: try url("/1/"), now: .seconds(5)) == nil)
        #expect(cache.preemptiveEntry(for: try url("/3/"), now: .seconds(5)) != nil)
    }

    @Test func clearsEverythingOrOneOrigin() throws {
        var cache = try cache(("r", "/"), ("s", "/s/"))
        let other = try FetchURL("https://h/")
        let elsewhere = ProtectionSpace(
            scheme: "https", host: "h", port: 443, realm: "r", authenticationMethod: .httpBasic)
        cache.remember(bob, for: elsewhere, at: other, digest: nil, now: .zero)
        #expect(cache.clear(at: try SiteAddress(url("/").text)) == 2)
        #expect(cache.count == 1)
        #expect(cache.clear() == 1)
        #expect(cache.clear() == 0)
    }
}
