import JSONText
import Testing
import WatchwordCore
import WatchwordProtocol

@testable import Broker

/// Logins at an authorization server, and the keyring that holds them.
@Suite struct BrokerLoginTests {
    private static let space = #"{"protectionSpace":{"protocol":"https","host":"api"}}"#
    private static let metadata =
        #"{"issuer":"https://as","token_endpoint":"https://as/token","device_authorization_endpoint":"https://as/device"}"#
    private static let code =
        #"{"device_code":"d","user_code":"AB","verification_uri":"https://as/go","interval":1}"#
    private static let key: [ExactText: ExactText] = [
        "watchword-grant": "1", "resource": "https://api", "issuer": "https://as", "client-id": "me",
    ]

    private func stage(keyring: Bool = true, _ sharing: FetchTable.Sharing = .user) -> Stage {
        var rule = OAuthRule(resource: "https://api")
        (rule.issuer, rule.clientID, rule.flow, rule.usesDPoP) = ("https://as", "me", .device, false)
        return Stage(hasKeyring: keyring) { ($0.oauthRules, $0.sharing) = ([rule], sharing) }
    }

    /// Puts a login into the keyring.
    private func store(_ refresh: String = "r1", _ more: [ExactText: ExactText] = [:], in stage: Stage) {
        let text = Array(#"{"refreshToken":"\#(refresh)","scopes":[],"denied":[]}"#.utf8)
        stage.keyring.store(
            text.withUnsafeBytes { Secret(copying: $0) }, attributes: Self.key.merging(more) { $1 }, label: "login",
            completion: { _ in })
    }

    /// Answers the last request for this path.
    private func answer(
        _ path: ExactText, _ stage: Stage, _ status: Int = 200, _ body: String = "", _ challenge: String = "Bearer"
    ) {
        guard let index = stage.transfers.requests.lastIndex(where: { $0.url.path == path }) else { return }
        let headers: HeaderBlock = [HeaderField("WWW-Authenticate", challenge)]
        stage.transfers.complete(
            .success(TransferResponse(status: status, headers: headers, body: Array(body.utf8))), ofRequest: index)
    }

    /// Starts a fetch that is challenged for a token.
    private func challenge(_ client: StageClient, _ more: String = "") {
        _ = client.fetch("https://api/", more: more)
        answer("/", client.stage, 401)
        _ = client.hear()
        answer("/.well-known/oauth-authorization-server", client.stage, 200, Self.metadata)
        _ = client.hear()
    }

    /// Starts a fetch for which a person has to log in with a device; returns the question.
    private func question(_ client: StageClient) -> JSON? {
        challenge(client)
        answer("/device", client.stage, 200, Self.code)
        return client.hear().of("auth/challenge").first
    }

    private func token(
        _ stage: Stage,
        _ token: String = #"{"access_token":"a1","token_type":"Bearer","refresh_token":"r1","expires_in":3600}"#
    ) {
        stage.clock.advance(by: .seconds(2))
        stage.loop.turn()
        answer("/token", stage, 200, token)
        stage.loop.turn()
    }

    private func paths(_ stage: Stage) -> [ExactText] { stage.transfers.requests.map(\.url.path) }

    /// Makes a person log in with a device, and the fetch succeed.
    private func logIn(_ client: StageClient) throws {
        #expect(question(client)?["params"]?["login"]?["userCode"]?.string == "AB")
        token(client.stage)
        answer("/", client.stage)
        #expect(client.hear().replies.last?.status == 200)
    }

    // MARK: Forgetting

    @Test func forgettingIsAnsweredAfterTheKeyringHasRemovedTheLogin() {
        let stage = stage()
        store(in: stage)
        let client = stage.connect(.request)
        stage.keyring.hold()
        #expect(client.call("credential/forget", Self.space) == nil && stage.keyring.items.count == 1)
        stage.keyring.release()
        #expect(client.hear().replies.last?["result"]?["removed"]?.integer == 1 && stage.keyring.items.isEmpty)
    }

    @Test(arguments: [
        Self.space, #"{"id":"keyring:/item/1"}"#, #"{"id":"session:1"}"#,
    ])
    func aLoginThatTheKeyringCannotRemoveIsAnError(what: String) throws {
        let stage = stage()
        let client = stage.connect(.request)
        if what.contains("session") { try logIn(client) } else { store(in: stage) }
        stage.keyring.hold()
        #expect(client.call("credential/forget", what) == nil)
        stage.keyring.failure = KeyringFailure(.locked, "it is locked")
        stage.keyring.release()
        let reply = client.hear().replies.last
        #expect(reply?.kind == "keyringUnavailable" && reply?["error"]?["message"]?.string?.contains("locked") == true)
        #expect(stage.keyring.items.count == 1)
    }

    @Test func aLoginThatIsBeingRemovedIsNotUsed() {
        let stage = stage()
        store(in: stage)
        let client = stage.connect(.request)
        stage.keyring.hold()
        _ = client.call("credential/forget", Self.space)
        #expect(question(client) != nil)
        #expect(!paths(stage).contains("/token"))
        stage.keyring.release()
        _ = client.hear()
        #expect(stage.keyring.items.isEmpty)
    }

    @Test func twoRemovalsEndOneAfterTheOther() {
        let stage = stage()
        store(in: stage)
        let clients = [stage.connect(.request), stage.connect(.request)]
        stage.keyring.hold()
        for client in clients { #expect(client.call("credential/forget", Self.space) == nil) }
        stage.keyring.release()
        #expect(clients.map { $0.hear().replies.last?["result"]?["removed"]?.integer } == [1, 1])
        store("r2", in: stage)
        challenge(clients[0])
        #expect(paths(stage).last == "/token", "the next login is found")
    }

    // MARK: Logins that are of no use

    /// Starts a fetch that the resource refuses with and without a token; returns whether a person was asked.
    private func isAsked(_ client: StageClient, _ number: Int) -> Bool {
        let stage = client.stage
        guard question(client) != nil else { return false }
        token(stage, #"{"access_token":"a\#(number)","token_type":"Bearer"}"#)
        answer("/", stage, 401)
        #expect(client.hear().replies.last?.kind == "loginFailed")
        return true
    }

    @Test("A resource that refuses all tokens leads to a question after 1, 2, 4 and more minutes")
    func questionsAboutAResourceThatRefusesAllTokensGetFewer() {
        let stage = stage(keyring: false)
        let client = stage.connect(.request)
        #expect(isAsked(client, 0))
        var minutes: [Int] = []
        for minute in 1...120 {
            stage.clock.advance(by: .seconds(62))
            if isAsked(client, minute) { minutes.append(minute) }
        }
        #expect(minutes == [1, 3, 7, 15, 31, 62])
        // After forgetting, the count starts again.
        #expect(client.call("credential/forget", Self.space)?["result"]?["removed"]?.integer == 0)
        #expect(isAsked(client, 121))
    }

    @Test func aDeniedScopeIsNotAskedForAgain() {
        let stage = stage(keyring: false)
        let client = stage.connect(.request)
        let insufficient = #"Bearer error="insufficient_scope", scope="write""#
        func widen() -> [JSON] {
            answer("/", stage, 403, "", insufficient)
            let heard = client.hear()
            answer("/device", stage, 200, Self.code)
            return heard + client.hear()
        }
        #expect(question(client) != nil)
        token(stage, #"{"access_token":"a1","token_type":"Bearer","scope":"read"}"#)
        answer("/", stage)
        #expect(client.hear().replies.last?.status == 200)
        _ = client.fetch("https://api/")
        #expect(widen().of("auth/challenge").count == 1)
        token(stage, #"{"access_token":"a2","token_type":"Bearer","scope":"read"}"#)
        #expect(client.hear().replies.last?.kind == "loginFailed")
        stage.clock.advance(by: .seconds(60))
        _ = client.fetch("https://api/")
        #expect(widen().replies.last?.kind == "loginFailed")
        _ = client.call("credential/forget", Self.space)
        #expect(question(client) != nil)
        token(stage, #"{"access_token":"a3","token_type":"Bearer","scope":"read"}"#)
        #expect(widen().of("auth/challenge").count == 1)
    }

    @Test(
        "Rule 31: after a login has failed, a program that did not wait for it begins its own, also if its fetch is older"
    )
    func afterALoginHasFailedOthersBeginTheirOwn() {
        for isOlder in [true, false] {
            let stage = stage(keyring: false)
            let (first, second) = (stage.connect(.request), stage.connect(.request, pid: 5))
            if isOlder { _ = second.fetch("https://api/other") }
            #expect(question(first) != nil)
            if !isOlder { _ = second.fetch("https://api/other") }
            stage.clock.advance(by: .seconds(2))
            stage.loop.turn()
            answer("/token", stage, 400, #"{"error":"expired_token"}"#)
            #expect(first.hear().replies.last?.kind == "challengeTimedOut")
            answer("/other", stage, 401)
            _ = second.hear()
            answer("/.well-known/oauth-authorization-server", stage, 200, Self.metadata)
            _ = second.hear()
            answer("/device", stage, 200, Self.code)
            let heard = second.hear()
            #expect(heard.of("auth/challenge").count == 1 && heard.replies.isEmpty)
        }
    }

    @Test(
        "Rule 31: a login that has failed ends the fetches of all programs that waited for it, also those in the queue")
    func aLoginThatHasFailedEndsAllThatWaited() {
        let stage = stage(keyring: false)
        let clients = [stage.connect(.request)] + (2...9).map { stage.connect(.request, pid: $0) }
        for (index, client) in clients.enumerated() {
            _ = client.fetch("https://api/\(index)")
            answer(ExactText("/\(index)"), stage, 401)
            // The first ones wait for its beginning, the others for the person.
            guard index == 4 else { continue }
            _ = clients[0].hear()
            answer("/.well-known/oauth-authorization-server", stage, 200, Self.metadata)
            _ = clients[0].hear()
            answer("/device", stage, 200, Self.code)
            #expect(clients[0].hear().of("auth/challenge").count == 1)
        }
        stage.clock.advance(by: .seconds(2))
        stage.loop.turn()
        answer("/token", stage, 400, #"{"error":"invalid_grant"}"#)
        for client in clients {
            let heard = client.hear()
            #expect(heard.replies.last?.kind == "loginFailed" && heard.of("auth/challenge").count == 0)
        }
        #expect(paths(stage).count { $0 == "/device" } == 1)
    }

    // MARK: A locked keyring

    @Test("A stored login that is locked is unlocked if somebody may be asked who has consented")
    func aLockedLoginIsUnlockedIfSomebodyMayBeAsked() {
        for (sharing, more, isUnlocked) in [
            (FetchTable.Sharing.user, "", true), (.user, #","auth":{"interaction":"none"}"#, false), (.ask, "", false),
        ] {
            let stage = stage(sharing)
            store(in: stage)
            stage.keyring.lock()
            let client = stage.connect(.request)
            challenge(client, more)
            #expect(stage.keyring.windows == (isUnlocked ? 1 : 0), "\(sharing) \(more)")
            #expect(paths(stage).contains("/token") == isUnlocked)
        }
    }

    @Test func aReadableLoginIsUsedBesideALockedOne() {
        let stage = stage()
        store("old", ["copy": "1"], in: stage)
        stage.keyring.lock(default: false)
        store(in: stage)
        challenge(stage.connect(.request))
        #expect(stage.keyring.windows == 0 && paths(stage).last == "/token")
    }

    @Test(
        "Rule X5: a window of the keyring that a person has closed opens again after 10 s, 20 s and so on, for whatever program"
    )
    func aClosedWindowOfTheKeyringOpensLater() {
        let stage = stage()
        store(in: stage)
        stage.keyring.lock()
        stage.keyring.isDismissed = true
        var times: [Int] = []
        for second in 0..<80 {
            let before = stage.keyring.windows
            let client = stage.connect(.request, pid: Int32(second + 2))
            #expect(question(client) != nil, "\(second)")
            client.leave()
            if stage.keyring.windows > before { times.append(second) }
            // The login ends when nobody waits for it.
            stage.clock.advance(by: .seconds(1))
            stage.broker.assumeIsolated { $0.desks.tokens.endSearches { _ in true } }
        }
        #expect(times == [0, 10, 30, 70])
    }

    @Test("A closed window opens again if a person asks for it, and after an unlocking there is no delay")
    func aPersonOpensTheWindowOfTheKeyringAgain() {
        let stage = stage()
        store(in: stage)
        stage.keyring.lock()
        stage.keyring.isDismissed = true
        let client = stage.connect(.request)
        #expect(question(client) != nil && stage.keyring.windows == 1)
        #expect(client.call("keyring/unlock")?.kind == "keyringUnavailable" && stage.keyring.windows == 2)
        stage.keyring.isDismissed = false
        #expect(client.call("keyring/unlock")?["result"]?["state"]?.string == "usable")
        stage.keyring.lock()
        stage.broker.assumeIsolated { $0.desks.tokens.endSearches { _ in true } }
        challenge(stage.connect(.request, pid: 5))
        #expect(stage.keyring.windows == 4)
    }

    @Test func programsThatNeedTheLockedKeyringShareOneWindow() {
        let stage = Stage(hasKeyring: true) { options in
            options.oauthRules = (1...9).map { number in
                var rule = OAuthRule(resource: "https://api/\(number)")
                (rule.issuer, rule.clientID, rule.flow, rule.usesDPoP) = ("https://as", "me", .device, false)
                return rule
            }
        }
        for number in 1...9 { store("r", ["resource": ExactText("https://api/\(number)")], in: stage) }
        stage.keyring.lock()
        stage.keyring.isDismissed = true
        stage.keyring.hold()
        let clients = (1...9).map { number in
            let client = stage.connect(.request, pid: Int32(number + 1))
            _ = client.fetch("https://api/\(number)")
            answer(ExactText("/\(number)"), stage, 401, "", "Bearer realm=\"\(number)\"")
            _ = client.hear()
            if number == 1 { answer("/.well-known/oauth-authorization-server", stage, 200, Self.metadata) }
            _ = client.hear()
            return client
        }
        stage.keyring.release()
        for client in clients { _ = client.hear() }
        #expect(stage.keyring.windows == 1 && paths(stage).count { $0 == "/device" } == 9)
    }

    @Test func aLoginAfterAClosedWindowIsStoredWithoutAnother() throws {
        let stage = stage()
        store(in: stage)
        stage.keyring.lock()
        stage.keyring.isDismissed = true
        let client = stage.connect(.request)
        try logIn(client)
        #expect(stage.keyring.windows == 1 && hasGrants(stage))
    }

    // MARK: Stopping

    @Test func stoppingWaitsForALoginThatIsBeingStored() {
        let stage = stage()
        let client = stage.connect(.request)
        _ = question(client)
        stage.keyring.hold()
        token(stage)
        client.leave()
        nonisolated(unsafe) var hasEnded = false
        stage.broker.assumeIsolated { $0.shutDown(reason: "test", grace: .seconds(5)) { hasEnded = true } }
        stage.clock.advance(by: .seconds(1))
        #expect(!hasEnded)
        stage.keyring.release()
        stage.loop.turn()
        stage.clock.advance(by: .seconds(1))
        #expect(hasEnded && stage.keyring.items.count == 1)
    }

    // MARK: Clients with a session of their own

    private func hasGrants(_ stage: Stage) -> Bool { stage.broker.assumeIsolated { $0.desks.tokens.hasGrants } }

    @Test func aLoginInTheSessionOfAClientIsNotForAnother() throws {
        let stage = stage(keyring: false, .client)
        let (first, second) = (stage.connect(.request), stage.connect(.request, pid: 5))
        try logIn(first)
        #expect(hasGrants(stage))
        #expect(question(second) != nil)
        #expect(paths(stage).count { $0 == "/token" } == 1)
        // Neither does it forget it.
        #expect(second.call("credential/forget", Self.space)?["result"]?["removed"]?.integer == 0)
        #expect(hasGrants(stage))
        first.leave()
        #expect(!hasGrants(stage))
    }

    @Test func aSharedLoginServesTheNextClient() throws {
        let stage = stage(keyring: false)
        let (first, second) = (stage.connect(.request), stage.connect(.request, pid: 5))
        try logIn(first)
        first.leave()
        #expect(hasGrants(stage))
        _ = second.fetch("https://api/")
        #expect(stage.transfers.requests.last?.authorization != nil)
    }

    @Test func theLoginOfAClientEndsWithIt() {
        let stage = stage(keyring: false, .client)
        let (first, second) = (stage.connect(.request), stage.connect(.request, pid: 5))
        #expect(question(first) != nil)
        let requests = stage.transfers.requests.count
        first.leave()
        stage.clock.advance(by: .seconds(9))
        _ = second.hear()
        #expect(stage.transfers.requests.count == requests)
    }
}
