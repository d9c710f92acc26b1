import Testing
import WatchwordProtocol

@testable import WatchwordCore

@Suite struct RedirectTests {
    @Test("Rules 15, 23 and R19: no credential is sent to another origin after a redirect")
    func noCredentialFollowsToAnotherOrigin() throws {
        for target in ["http://other/", "http://h:81/", "https://h/"] {
            var run = try MachineRun("http://carol:url@h/") { $0.credential = login("bob", "own") }
            run.start()
            run.challengeBasic()
            run.respond(302, ("Location", target))
            run.challengeBasic()
            #expect(run.authorizations == [nil, basic("bob", "own"), nil], "\(target)")
            #expect(run.challenges.last?.previousFailureCount == 0)
            #expect(run.challenges.last?.url == target)
            #expect(run.challenges.last?.proposedCredential == nil)
        }
    }

    @Test("Rules 23 and R19: client header fields stay dropped after a change of origin")
    func clientHeaderFieldsStayDroppedAfterAChangeOfOrigin() throws {
        var run = try MachineRun("http://h/") {
            $0.headers = [HeaderField("X-Api-Key", "k"), HeaderField("Cookie", "c"), HeaderField("Accept", "a/b")]
        }
        run.start()
        run.respond(302, ("Location", "/same"))
        #expect(run.requests[1].headers.count == 3)
        run.respond(302, ("Location", "http://other/"))
        #expect(run.requests[2].headers == [HeaderField("Accept", "a/b")])
        run.respond(302, ("Location", "http://h/"))
        #expect(run.requests[3].headers == [HeaderField("Accept", "a/b")])
    }

    @Test("Rule 23: a redirect from https to http is refused after a login")
    func aRedirectFromHttpsToHttpIsRefusedAfterALogin() throws {
        var run = try MachineRun("https://h/") { $0.credential = login("bob", "pw") }
        run.start()
        run.challengeBasic()
        run.respond(302, ("Location", "http://h/"))
        #expect(run.failure == .insecureRedirect)
        var anonymous = try MachineRun("https://h/")
        anonymous.start()
        anonymous.respond(302, ("Location", "http://h/"))
        #expect(anonymous.requests.last?.url.text == "http://h/")
    }

    @Test(arguments: [
        (301, "POST", "GET"), (302, "POST", "GET"), (303, "POST", "GET"), (303, "PUT", "GET"), (307, "POST", "POST"),
        (308, "PUT", "PUT"), (301, "PUT", "PUT"), (303, "HEAD", "HEAD"), (302, "GET", "GET"),
    ])
    func methodsChangeAsTheRFCSays(status: Int, method: String, next: String) throws {
        var run = try MachineRun("http://h/") {
            $0.method = method
            $0.body = method == "GET" || method == "HEAD" ? nil : [1, 2]
            $0.headers = [HeaderField("Content-Type", "x/y"), HeaderField("X", "y")]
        }
        run.start()
        run.respond(status, ("Location", "/next"))
        #expect(run.requests[1].method == next)
        let dropsBody = method != next
        #expect(run.requests[1].body == (dropsBody ? nil : run.requests[0].body))
        #expect(run.requests[1].headers.contains { $0.isNamed("Content-Type") } == !dropsBody)
        #expect(run.requests[1].headers.contains { $0.isNamed("X") })
    }

    @Test(arguments: [(301, "POST"), (302, "POST"), (303, "PUT"), (303, "DELETE")])
    func theMethodCanBePreservedWithoutItsBody(status: Int, method: String) throws {
        var run = try MachineRun("http://h/") {
            ($0.method, $0.body) = (method, [1])
            $0.redirects.keepMethod = true
        }
        run.start()
        run.respond(status, ("Location", "/next"))
        #expect(run.requests[1].method == method && run.requests[1].body == nil)
    }

    @Test(arguments: [(301, "POST", true), (302, "POST", false), (303, "POST", true), (303, "PUT", false)])
    func aPostCanBePreservedWithItsBody(status: Int, method: String, isKept: Bool) throws {
        var run = try MachineRun("http://h/") {
            ($0.method, $0.body) = (method, [1])
            $0.redirects.keepPost = [301, 303]
        }
        run.start()
        run.respond(status, ("Location", "/next"))
        #expect(run.requests[1].method == (isKept ? "POST" : "GET"))
        #expect(run.requests[1].body == (isKept ? run.requests[0].body : nil))
    }

    @Test func aSchemeThatIsNotAllowedIsNotFollowed() throws {
        var run = try MachineRun("http://h/") { $0.redirects.schemes = ["https"] }
        run.start()
        run.respond(302, ("Location", "/next"))
        #expect(run.failure == .insecureRedirect && run.requests.count == 1)
        var allowed = try MachineRun("http://h/") { $0.redirects.schemes = ["https"] }
        allowed.start()
        allowed.respond(302, ("Location", "https://h/"))
        #expect(allowed.requests.count == 2)
    }

    @Test func exchangesAreReportedWithoutTheirLogin() throws {
        var run = try MachineRun("http://h/a?b") {
            $0.notify = [.exchanges]
            $0.headers = [HeaderField("X-A", "b")]
            $0.omitHeaders = ["accept"]
            $0.credential = login("bob", "pw")
        }
        run.start()
        run.challengeBasic()
        run.respond(200)
        var sent: [SentRequest] = []
        var statuses: [Int] = []
        for event in run.events {
            if case .requested(let request) = event { sent.append(request) }
            if case .answered(let response) = event { statuses.append(response.status) }
        }
        #expect(statuses == [401, 200] && sent.map(\.target) == ["/a?b", "/a?b"])
        let plain = [HeaderField("Host", "h"), HeaderField("User-Agent", "watchword"), HeaderField("X-A", "b")]
        #expect(sent.map(\.headers) == [plain, plain + [HeaderField("Authorization", "Basic [redacted]")]])
        #expect(sent.map(\.login?.source) == [nil, .explicit] && sent[1].login?.user == "bob")
        #expect(!String(describing: sent).contains("pw"))
        var silent = try MachineRun("http://h/")
        silent.start()
        silent.respond(200)
        #expect(silent.events.count == 1, "only the result")
    }

    @Test func redirectsAreCountedAndReported() throws {
        var run = try MachineRun("http://h/0") { $0.maxRedirects = 2 }
        run.start()
        run.respond(302, ("Location", "/1"))
        run.respond(302, ("Location", "/2"))
        #expect(
            run.events == [
                .redirected(status: 302, from: "http://h/0", to: "http://h/1"),
                .redirected(status: 302, from: "http://h/1", to: "http://h/2"),
            ])
        run.respond(302, ("Location", "/3"))
        #expect(run.failure == .tooManyRedirects)
        #expect(run.requests.count == 3)
    }

    @Test func withoutRedirectsTheResponseItselfIsTheResult() throws {
        var run = try MachineRun { $0.maxRedirects = 0 }
        run.start()
        run.respond(302, ("Location", "/x"))
        #expect(run.result?.response.status == 302)
    }

    @Test func aBadLocationIsAnErrorAndNoneAtAllIsAResponse() throws {
        var run = try MachineRun()
        run.start()
        run.respond(302, ("Location", "ftp://h/"))
        #expect(run.failure == .badRedirect)
        var plain = try MachineRun()
        plain.start()
        plain.respond(302)
        #expect(plain.result?.response.status == 302)
        var choices = try MachineRun()
        choices.start()
        choices.respond(300, ("Location", "/x"))
        #expect(choices.result?.response.status == 300)
    }

    @Test func theSessionOfTheNewOriginIsUsed() throws {
        var login = try MachineRun("http://other/")
        login.start()
        login.challengeBasic()
        login.answer(user: "bob", "pw")
        login.respond(200)
        var run = try MachineRun("http://h/", session: login.session)
        run.start()
        run.respond(302, ("Location", "http://other/x"))
        #expect(run.authorizations == [nil, basic("bob", "pw")])
    }
}

@Suite struct UnwantedBodyTests {
    @Test func anEmptyLocationIsNotARedirect() throws {
        for location in ["", " "] {
            var run = try MachineRun()
            run.start()
            run.respond(302, ("Location", location.filter { $0 != " " }))
            #expect(run.requests.count == 1)
            #expect(run.result?.response.status == 302)
        }
    }

    @Test func theLimitOfTheBodyIsForTheFinalOne() throws {
        var run = try MachineRun { $0.maxBodyBytes = 2 }
        run.start()
        run.respond(302, ("Location", "/next"), body: "moved")
        run.challengeBasic(body: "log in")
        run.answer(user: "bob", "pw")
        run.respond(200, body: "ok")
        #expect(run.result?.response.status == 200)
        var refused = try MachineRun { $0.maxBodyBytes = 5 }
        refused.start()
        refused.challengeBasic(body: "log in")
        refused.answer(.proceed)
        #expect(refused.failure == .tooLarge)
        var fits = try MachineRun { $0.maxBodyBytes = 6 }
        fits.start()
        fits.challengeBasic(body: "log in")
        fits.answer(.proceed)
        #expect(fits.result?.response.status == 401)
    }
}

@Suite struct HeaderPolicyTests {
    @Test func fieldsThatTheBrokerAddsCanBeLeftOut() throws {
        #expect(try HeaderPolicy.checkedOmissions(["Accept", "USER-AGENT"]) == ["accept", "user-agent"])
        for name in ["Host", "Content-Length", "Authorization", "X", ""] {
            #expect(throws: FetchFailure.self) { try HeaderPolicy.checkedOmissions([name]) }
        }
    }

    @Test(arguments: [
        HeaderField("X", "a\r\nEvil: b"), HeaderField("X", "a\nb"), HeaderField("X", "a\u{0}b"),
        HeaderField("X y", "a"),
        HeaderField("", "a"), HeaderField("X:", "a"), HeaderField("Authorization", "Basic x"),
        HeaderField("HOST", "evil"),
        HeaderField("Content-Length", "1"), HeaderField("Transfer-Encoding", "chunked"),
        HeaderField("Connection", "close"),
        HeaderField("Proxy-Authorization", "x"), HeaderField("Expect", "100-continue"), HeaderField("Upgrade", "h2c"),
        HeaderField("Proxy-Connection", "keep-alive"), HeaderField("proxy-foo", "x"), HeaderField("Cookie2", "x"),
        HeaderField("HTTP2-Settings", "AAMAAABkAARAAAAAAAIAAAAA"),
    ])
    func refusesFieldsThatClientsCannotSet(field: HeaderField) {
        #expect { try HeaderPolicy.checked([field]) } throws: { ($0 as? FetchFailure)?.kind == .invalidHeader }
    }

    @Test(arguments: ["Authorization", "proxy-authorization"])
    func anErrorAboutALoginFieldNamesTheOption(name: String) {
        #expect { try HeaderPolicy.checked([HeaderField(name, "Basic x")]) } throws: { error in
            (error as? FetchFailure)?.text.contains("provide the login as a credential") == true
        }
    }

    @Test func anErrorNamesTheFieldAndNotItsValue() {
        #expect { try HeaderPolicy.checked([HeaderField("X-Token", "hush\n")]) } throws: { error in
            guard let failure = error as? FetchFailure else { return false }
            return failure.text.contains("X-Token") && !failure.text.contains("hush")
        }
    }

    @Test(arguments: [
        "", "GE T", "GET\r\n", "CONNECT", "TRACE", "TRACK", "connect", "Trace", "track",
        String(repeating: "A", count: 33),
    ])
    func refusesMethods(method: String) {
        #expect { try HeaderPolicy.checkedMethod(method) } throws: { ($0 as? FetchFailure)?.kind == .invalidMethod }
    }
}
