import Testing
import WatchwordProtocol

@testable import WatchwordCore

/// The selection among the offered schemes: SECURITY-RULES O1, D19 and K2.
@Suite struct SchemeOrderTests {
    private let digest = "Digest realm=\"r\", nonce=\"n\", qop=\"auth\", algorithm=SHA-256"
    private let token = LoginCredential(form: .token, secret: secret("t0ken"), persistence: .forSession)
    private let server = Challenger.server(Origin(scheme: .https, host: "h", port: 443))

    private func names(
        _ field: String, _ rules: SchemeRules = SchemeRules(), at challenger: Challenger? = nil,
        allowed: [AuthenticationMethod]? = nil, isReadable: Bool = false
    ) -> [String] {
        OfferList(
            ChallengeHeader.parse(fields: [field]), by: challenger ?? server, allowed: allowed, isReadable: isReadable,
            rules
        ).answerable.map(\.scheme)
    }

    private func everywhere(_ order: [AuthenticationMethod]? = nil) throws -> SchemeRules {
        let pattern = try HostPattern("h")
        return SchemeRules(
            negotiateHosts: [pattern], ntlmHosts: [pattern],
            sites: order.map { [SchemeRules.Site(hosts: [pattern], order: $0)] } ?? [])
    }

    private var all: String { "Hoba, Bearer, NTLM, Basic realm=\"r\", \(digest), Negotiate" }

    @Test("Rule O1: the strongest scheme comes first")
    func theStrongestFirst() throws {
        #expect(names(all, try everywhere()) == ["negotiate", "digest", "basic", "ntlm", "bearer", "hoba"])
        #expect(names(all) == ["digest", "basic", "bearer", "hoba"])
    }

    @Test("Rule O1: the order of a site leaves out the schemes it does not name")
    func theOrderOfASiteLeavesOutWhatItDoesNotName() throws {
        #expect(names(all, try everywhere([.httpBasic, .httpDigest])) == ["basic", "digest"])
        #expect(names(all, try everywhere([.ntlm, .negotiate])) == ["ntlm", "negotiate"])
        var unlisted = try everywhere([.ntlm, .negotiate, .bearer])
        unlisted.ntlmHosts = []
        unlisted.negotiateHosts = []
        #expect(names(all, unlisted) == ["bearer"])
        #expect(names(all, allowed: [.httpBasic, .bearer]) == ["basic", "bearer"])
    }

    @Test("Rule O1: Basic outranks nothing over plain http")
    func basicRanksLastOnReadableConnections() throws {
        let plain = Challenger.server(Origin(scheme: .http, host: "h", port: 80))
        #expect(
            names(all, try everywhere([.httpBasic, .httpDigest]), at: plain, isReadable: true) == ["digest", "basic"])
    }

    /// The machine decides which connections are readable: see `ChallengerTests`.
    @Test("Rule K2: no token is sent in the clear")
    func noTokenIsSentInTheClear() {
        #expect(names("Bearer") == ["bearer"])
        #expect(names("Bearer", isReadable: true).isEmpty)
    }

    @Test func anAvailableTokenComesBeforeDigest() throws {
        let pattern = SpacePattern(scheme: "https", host: "h", port: 443, realm: "r", authenticationMethod: .bearer)
        for isAvailable in [true, false] {
            var run = TableRun()
            if isAvailable { _ = run.table.give(token, for: pattern, of: ClientTag(value: 1), now: .zero) }
            let fetch = try run.fetch("https://h/")
            run.challenge(fetch, "\(digest), Bearer realm=\"r\"")
            #expect(run.sent == (isAvailable ? ["Bearer t0ken"] : []))
            guard isAvailable else { continue }
            run.challenge(fetch, "\(digest), Bearer realm=\"r\"")
            #expect(run.asksAbout(fetch) == .httpDigest)
            #expect(run.question(fetch)?.previousFailureCount == 1)
        }
    }

    @Test func theOrderOfASiteIsTheOrderInWhichPeopleAreAsked() throws {
        var run = TableRun()
        run.schemes = try everywhere([.bearer, .httpDigest])
        let fetch = try run.fetch("https://h/")
        run.challenge(fetch, "\(digest), Basic realm=\"r\", Bearer realm=\"r\"")
        #expect(run.asksAbout(fetch) == .bearer)
        run.answer(fetch, user: "bob", "pw")
        #expect(run.question(fetch)?.error == .credentialOfWrongType)
        run.answer(fetch, .reject)
        #expect(run.asksAbout(fetch) == .httpDigest)
        run.answer(fetch, .reject)
        #expect(run.results[fetch]?.response.status == 401)
    }

    @Test("Rule D19: a weaker scheme is marked as a downgrade and gets no stored credential")
    func aWeakerSchemeIsFlaggedAndGetsNoStoredCredential() throws {
        var run = TableRun()
        let basicFirst = try run.fetch("https://h/a/")
        run.challenge(basicFirst)
        run.answer(basicFirst, user: "bob", "pw")
        run.respond(basicFirst, 200)
        let stronger = try run.fetch("https://h/a/") { $0.preemption = .never }
        run.challenge(stronger, digest)
        #expect(run.question(stronger)?.isDowngrade == false)
        run.answer(stronger, user: "bob", "pw")
        run.respond(stronger, 200)
        let later = try run.fetch("https://h/a/")
        #expect(run.last(later)?.authorization?.revealed.hasPrefix("Basic") != true)
        run.challenge(later)
        #expect(run.question(later)?.isDowngrade == true)
        #expect(run.question(later)?.proposedCredential == nil)
        let own = try run.fetch("https://h/a/", client: 2) { $0.credential = login("bob", "own") }
        run.challenge(own)
        #expect(run.last(own)?.authorization?.revealed == basic("bob", "own"))
        let elsewhere = try run.fetch("https://h/a/")
        run.challenge(elsewhere, "Basic realm=\"other\"")
        #expect(run.question(elsewhere)?.isDowngrade == false)
    }

    @Test("Rule D19: the strength of proxies is remembered separately")
    func theStrengthOfProxiesIsRememberedSeparately() throws {
        var run = TableRun(proxy: wayOut)
        for (scheme, isDowngrade) in [("\(digest)", false), ("Basic realm=\"r\"", true)] {
            let fetch = try run.fetch { $0.preemption = .never }
            run.challengeFromProxy(fetch, scheme)
            #expect(run.question(fetch)?.isDowngrade == isDowngrade)
            run.answer(fetch, user: "out", "pw")
            run.respond(fetch, 200)
        }
        let server = try run.fetch()
        run.challenge(server)
        #expect(run.question(server)?.isDowngrade == false)
    }

    @Test func aSchemeThatBecameForbiddenIsNotSentPreemptively() throws {
        var run = TableRun()
        let fetch = try run.fetch("https://h/a/")
        run.challenge(fetch)
        run.answer(fetch, user: "bob", "pw")
        run.respond(fetch, 200)
        run.schemes = try everywhere([.httpDigest])
        #expect(try run.first("https://h/a/")?.authorization == nil)
    }

    @Test func aHeaderThatAClientHasMadeAnswersOneChallenge() throws {
        var run = TableRun()
        let ids = try [1, 2].map { try run.fetch("https://h/", client: $0) }
        for id in ids { run.challenge(id, "Hoba challenge=\"\(id)\"") }
        let header = LoginCredential(form: .header(scheme: "hoba", state: "1"), secret: secret("first"))
        run.answer(ids[0], .credential(.login(header)))
        #expect(run.sent == ["Hoba first"])
        run.challenge(ids[0], "Hoba challenge=\"next\"")
        #expect(run.question(ids[0])?.state == "1")
        #expect(run.question(ids[0])?.previousFailureCount == 0)
        let second = LoginCredential(form: .header(scheme: "Hoba", state: nil), secret: secret("second"))
        run.answer(ids[0], .credential(.login(second)))
        run.respond(ids[0], 200)
        #expect(run.asking == [ids[1]])
        #expect(run.sent == ["Hoba first", "Hoba second"])
        #expect(run.table.sessionCount == 0)
    }
}
