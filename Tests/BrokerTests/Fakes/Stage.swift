import JSONText
import Logging
import Testing
import WatchwordCore
import WatchwordProtocol

@testable import Broker

/// A broker with a fake clock, a fake network, and clients whose messages are recorded.
final class Stage {
    let loop = FakeLoop()
    let clock = FakeClock()
    let transfers: FakeTransfers
    let keyring = FakeKeyring()
    let audit = FakeAudit()
    let broker: Broker

    /// A program of the operating system.
    static let tool = Subject(.exe, "/usr/bin/tool", file: Subject.File(inode: 2, changed: 1), isSystemFile: true)

    init(
        hasKeyring: Bool = false, consents: (any ConsentPort)? = nil, upstreams: (any UpstreamPort)? = nil,
        change: (inout BrokerOptions) -> Void = { _ in }
    ) {
        var options = BrokerOptions(version: "test")
        change(&options)
        transfers = FakeTransfers(on: loop)
        var log = Logger(label: "test", factory: { _ in SwiftLogNoOpLogHandler() })
        log.logLevel = .critical
        broker = Broker(
            loop: loop, transfers: transfers, keyring: hasKeyring ? keyring : nil, consents: consents, audit: audit,
            upstreams: upstreams, clock: clock,
            options: options, log: log)
        broker.watchKeyring()
    }

    /// Returns a new connection; with `delivery` it has called `initialize`.
    func connect(
        _ delivery: ChallengeDelivery? = nil, pid: Int32 = 4711, subject: Subject = Stage.tool,
        currentSubject: Subject? = nil, earlyBytes: Int = 0
    ) -> StageClient {
        let client = FakeClient()
        var peer = PeerIdentity(pid: pid, uid: 1000, executable: "/usr/bin/tool", subject: subject)
        peer.process = FakeProcess(executable: peer.executable, subject: currentSubject ?? subject)
        peer.earlyBytes = earlyBytes
        let id = broker.connectionOpened(client, peer: peer)
        let connected = StageClient(stage: self, link: client, id: id)
        if let delivery {
            _ = connected.say(
                #"{"jsonrpc":"2.0","id":"hello","method":"initialize","params":{"client":{"name":"tester"},"protocolVersion":1,"capabilities":{"challenge":{"delivery":"\#(delivery.rawValue)"}}}}"#
            )
        }
        return connected
    }

    /// Runs tasks until they wait for the clock, or have resumed after it. The test fails if `condition` is never met.
    func settle(until condition: () -> Bool = { true }, at place: SourceLocation = #_sourceLocation) async {
        var isMet = false
        for _ in 0..<1000 {
            loop.turn()
            isMet = condition()
            if isMet { break }
            await Task.yield()
            try? await Task.sleep(for: .microseconds(200))
        }
        loop.turn()
        #expect(isMet, sourceLocation: place)
    }
}

struct StageClient {
    let stage: Stage
    let link: FakeClient
    let id: ConnectionID

    /// Sends one line, and returns what the broker has sent since.
    func say(_ line: String) -> [JSON] {
        Array((line + "\n").utf8).withUnsafeBytes { stage.broker.received($0, from: id) }
        return hear()
    }

    func hear() -> [JSON] {
        stage.loop.turn()
        return link.takeMessages()
    }

    /// Makes one call; returns the reply with its id.
    func call(_ method: String, _ params: String = "{}", id: String = "call") -> JSON? {
        say(#"{"jsonrpc":"2.0","id":"\#(id)","method":"\#(method)","params":\#(params)}"#)
            .last { $0["id"]?.string == id }
    }

    func fetch(_ url: String = "http://h/", id: Int = 1, more: String = "") -> [JSON] {
        say(#"{"jsonrpc":"2.0","id":\#(id),"method":"fetch/run","params":{"url":"\#(url)"\#(more)}}"#)
    }

    func answer(_ challenge: JSON, _ result: String) -> [JSON] {
        say(#"{"jsonrpc":"2.0","id":\#(challenge["id"]?.integer ?? 0),"result":\#(result)}"#)
    }

    func leave() {
        stage.broker.connectionClosed(id)
        stage.loop.turn()
    }
}

extension JSON {
    var method: String? { self["method"]?.string }
    var kind: String? { self["error"]?["data"]?["kind"]?.string }
    var status: Int? { self["result"]?["status"]?.integer }
}

extension [JSON] {
    /// The messages without the notifications.
    var replies: [JSON] { filter { $0.method == nil } }

    /// The notifications and requests of one method.
    func of(_ method: String) -> [JSON] { filter { $0.method == method } }
}

let bobsAnswer = #"{"action":"credential","credential":{"type":"password","user":"bob","password":"pw"}}"#

extension Broker {
    /// Shuts the broker down, and waits until it has ended.
    nonisolated func shutDown(reason: String, grace: Duration) async {
        await withCheckedContinuation { ended in
            assumeIsolated { $0.shutDown(reason: reason, grace: grace) { ended.resume() } }
        }
    }
}

/// State of the broker, read between the iterations of the loop on the thread of the test.
extension Broker {
    nonisolated var hasQuestions: Bool { assumeIsolated { !$0.desks.questions.all { $0.challenge != nil }.isEmpty } }

    nonisolated var hasFetches: Bool { assumeIsolated { !$0.desks.fetches.all.isEmpty } }

    nonisolated var hasConfirmations: Bool { assumeIsolated { !$0.desks.questions.all { $0.isConsent }.isEmpty } }

    nonisolated var sessionCount: Int { assumeIsolated { $0.desks.fetches.table.sessionCount } }

    nonisolated var hasSessionData: Bool { assumeIsolated { $0.desks.fetches.table.hasSessionData } }
}
