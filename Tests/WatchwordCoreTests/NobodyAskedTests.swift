import Testing
import WatchwordProtocol

@testable import WatchwordCore

/// SEMANTICS rule 28: the result contains the reason why no respondent was asked.
@Suite struct NobodyAskedTests {
    private let pattern = try? HostPattern("h")

    /// The reasons in the result of a fetch with interaction `none`, in the order of the offers.
    private func reasons(
        _ fields: [String], url: String = "http://h/", rules: SchemeRules = SchemeRules(),
        change: (inout FetchRunParams) -> Void = { _ in }
    ) throws -> [String] {
        var run = TableRun()
        run.schemes = rules
        let fetch = try run.fetch(url, subscription: nil) { params in
            params.interaction = .none
            change(&params)
        }
        run.receive(fetch, 401, fields.map { HeaderField("WWW-Authenticate", $0) }) { _ in }
        let unanswered = run.results[fetch]?.unanswered
        #expect(unanswered?.isOfProxy == false)
        return (unanswered?.schemes ?? []).map { "\($0.name) \($0.reason.rawValue)" }
    }

    @Test(
        "Rule 28: each scheme has its reason",
        arguments: [
            ("Basic realm=\"r\"", "Basic noRespondent"), ("Basic", "Basic noRespondent"),
            ("Basic realm=\"r\", realm=\"s\"", "Basic malformed"),
            ("Digest nonce=\"n\", qop=\"auth\"", "Digest noRealm"),
            ("Digest realm=\"r\", nonce=\"n\"", "Digest noRespondent"),
            ("Digest realm=\"r\", nonce=\"n\", algorithm=MD5-sess", "Digest noQop"),
            ("Digest realm=\"r\", qop=\"auth\"", "Digest malformed"),
            ("Digest realm=\"r\", nonce=\"n\", qop=\"auth\", algorithm=ROT13", "Digest malformed"),
            ("Digest realm=\"r\", nonce=\"n\", algorithm=ROT13", "Digest malformed"),
            ("Basic realm=\"r", "Basic malformed"), ("Negotiate", "Negotiate notListed"), ("NTLM", "NTLM notListed"),
            ("Bearer", "Bearer needsTLS"), ("Hoba", "Hoba noRespondent"), ("\"\"", " malformed"),
        ])
    func eachSchemeHasItsReason(field: String, expected: String) throws {
        #expect(try reasons([field]) == [expected])
    }

    @Test(
        "Rule 28: a forbidden weak challenge has its reason",
        arguments: [
            ("Basic", "Basic noRealm"), ("Digest realm=\"r\", nonce=\"n\"", "Digest noQop"),
            ("Basic realm=r", "Basic excluded"), ("Basic realm=\"r\"", "Basic noRespondent"),
        ])
    func aForbiddenWeakChallengeHasItsReason(field: String, expected: String) throws {
        var rules = SchemeRules()
        rules.allowsWeak = false
        #expect(try reasons([field], rules: rules) == [expected])
    }

    @Test("Rule 28: schemes are listed in their order, malformed fields last")
    func schemesAreListedInTheirOrderMalformedFieldsLast() throws {
        let found = try reasons(["Basic realm=\"r", "Negotiate, Basic realm=\"r\""])
        #expect(found == ["Negotiate notListed", "Basic noRespondent", "Basic malformed"])
    }

    @Test("Rule 28: a missing ticket is a reason")
    func aMissingTicketIsAReason() throws {
        let rules = SchemeRules(negotiateHosts: [try #require(pattern)])
        #expect(try reasons(["Negotiate"], rules: rules) { $0.useStorage = false } == ["Negotiate noTicket"])
    }

    @Test("Rule 28: schemes that the fetch or the configuration excludes have their reason")
    func schemesThatTheFetchOrTheConfigurationExcludesHaveTheirReason() throws {
        let both = ["Digest realm=\"r\", nonce=\"n\", qop=\"auth\", Basic realm=\"r\""]
        #expect(try reasons(both) { $0.methods = [.httpBasic] } == ["Digest excluded", "Basic noRespondent"])
        let rules = SchemeRules(sites: [.init(hosts: [try #require(pattern)], order: [.httpDigest])])
        #expect(try reasons(both, rules: rules) == ["Digest noRespondent", "Basic excluded"])
    }

    private func result(
        _ subscription: Subscription? = nil, cause: Unanswered.NoRespondent? = nil, consulted: Bool? = nil,
        change: (inout FetchRunParams) -> Void = { _ in }
    ) throws -> Unanswered? {
        var run = TableRun()
        let fetch = try run.fetch("http://h/", subscription: subscription, change: change)
        run.challenge(fetch)
        if let consulted { run.consulted(fetch, consulted) }
        if let cause { run.notAsked(fetch, cause) }
        return run.results[fetch]?.unanswered
    }

    @Test("Rule 28: the result says why there was no respondent")
    func theResultHasTheReasonForTheMissingRespondent() throws {
        #expect(try result { $0.interaction = .none }?.cause == .interaction)
        #expect(try result(cause: .noAgent)?.cause == .noAgent)
        #expect(try result(cause: .stopped)?.cause == .stopped)
        let subscription = Subscription(delivery: .request, asksCanAuthenticate: true)
        #expect(try result(subscription, consulted: false)?.cause == .canAuthenticate)
    }

    @Test("Rule 28: a challenge that was asked about has no reason")
    func aChallengeThatWasAskedAboutHasNoReason() throws {
        for answer in [ChallengeAnswer.proceed, .reject] {
            var run = TableRun()
            let fetch = try run.fetch("http://h/", subscription: nil)
            run.challenge(fetch)
            run.answer(fetch, answer)
            #expect(run.results[fetch]?.response.status == 401)
            #expect(run.results[fetch]?.unanswered == nil)
        }
        var run = TableRun()
        let silent = try run.fetch("http://h/", subscription: nil)
        run.challenge(silent)
        run.unanswered(silent)
        #expect(run.results[silent]?.unanswered == nil)
    }

    @Test("Rule 28: a missing agent counts for all programs, stopped prompts for one program")
    func aMissingAgentCountsForAllProgramsStoppedPromptsForOne() throws {
        for cause in [Unanswered.NoRespondent.noAgent, .stopped] {
            var run = TableRun()
            let subscription = Subscription(delivery: .request)
            let first = try run.fetch("http://h/", client: 1, subscription: subscription)
            run.challenge(first)
            let second = try run.fetch("http://h/", client: 2, subscription: nil)
            run.challenge(second)
            #expect(run.isWaiting(second))
            run.answer(first, .useDefault)
            run.notAsked(first, cause)
            #expect(run.results[first]?.unanswered?.cause == cause)
            #expect((run.question(second) != nil) == (cause == .stopped))
            if cause == .noAgent { #expect(run.results[second]?.unanswered?.cause == .noAgent) }
        }
    }

    @Test("Rule 28: the answer default counts as no respondent")
    func theAnswerDefaultCountsAsNoRespondent() throws {
        var run = TableRun()
        let fetch = try run.fetch("http://h/", subscription: nil)
        run.challenge(fetch)
        run.answer(fetch, .useDefault)
        #expect(run.results[fetch]?.unanswered?.cause == .noAgent)
        let gone = try run.fetch("http://h/", subscription: Subscription(delivery: .request))
        run.challenge(gone)
        run.notAsked(gone, .unsubscribed)
        run.notAsked(gone, .noAgent)
        #expect(run.results[gone]?.unanswered?.cause == .unsubscribed)
    }

    @Test("Rule 28: the reasons for a proxy challenge are listed for the proxy")
    func proxyAndServerHaveSeparateReasons() throws {
        var run = TableRun(proxy: ProxyEndpoint(type: .http, host: "proxy", port: 3128))
        let fetch = try run.fetch("http://h/", subscription: nil) { $0.interaction = .none }
        run.challengeFromProxy(fetch)
        #expect(run.results[fetch]?.unanswered?.isOfProxy == true)
        #expect(run.results[fetch]?.unanswered?.schemes == [.init("Basic", .noRespondent)])
    }

    @Test func anAcceptedLoginHasNoReasons() throws {
        var run = TableRun()
        let fetch = try run.fetch("http://bob:pw@h/", subscription: nil)
        run.challenge(fetch)
        run.respond(fetch, 200)
        #expect(run.results[fetch]?.unanswered == nil && run.results[fetch] != nil)
    }
}
