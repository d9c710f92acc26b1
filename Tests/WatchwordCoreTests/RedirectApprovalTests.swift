import Testing
import WatchwordProtocol

@testable import WatchwordCore

/// `fetch/approveRedirect`: the client decides about redirects that all rules allow.
@Suite struct RedirectApprovalTests {
    private func run(
        change: (inout FetchRunParams) -> Void = { _ in }
    ) throws -> MachineRun {
        var run = try MachineRun("https://h/a", subscription: approving, change: change)
        run.start()
        run.respond(302, ("Location", "https://other/b"), body: "moved")
        return run
    }

    @Test func anApprovedRedirectIsFollowed() throws {
        var run = try run()
        #expect(run.requests.count == 1)
        run.consulted(true)
        run.respond(200)
        #expect(run.requests.map(\.url.text) == ["https://h/a", "https://other/b"])
        #expect(run.result?.response.status == 200)
    }

    @Test(arguments: [false, nil]) func aRedirectThatIsNotApprovedIsTheResult(answer: Bool?) throws {
        var run = try run()
        run.consulted(answer)
        #expect(run.requests.count == 1 && run.result?.response.status == 302)
        #expect(run.result?.url.text == "https://h/a")
    }

    @Test func noApprovalIsRequestedForARedirectThatIsNotFollowed() throws {
        var insecure = try MachineRun("https://bob:pw@h/a", subscription: approving)
        insecure.start()
        insecure.challengeBasic()
        insecure.respond(302, ("Location", "http://h/b"))
        #expect(insecure.failure == .insecureRedirect)
        let none = try run { $0.maxRedirects = 0 }
        #expect(none.result?.response.status == 302)
    }

    @Test func eachRedirectIsAskedAbout() throws {
        var run = try run()
        run.consulted(true)
        run.respond(302, ("Location", "https://third/c"))
        #expect(run.requests.count == 2)
        run.consulted(false)
        #expect(run.result?.url.text == "https://other/b" && run.result?.response.status == 302)
    }

    private var approving: Subscription {
        var subscription = Subscription(delivery: .request)
        subscription.approvesRedirects = true
        return subscription
    }
}
