import JSONText
import Testing
import WatchwordCore
import WatchwordProtocol

@testable import Broker

/// The quotas that the connections of one process, and all clients, share.
@Suite struct BrokerQuotaTests {
    /// The exceeded quota: that of one process, by its second connection, or that of all programs, by another process.
    enum Crowd: CaseIterable, CustomTestStringConvertible {
        case program, allPrograms

        var testDescription: String { "\(self)" }
        var secondPID: Int32 { self == .program ? 4711 : 4712 }
        var words: String { self == .program ? "all connections of this program" : "all programs" }

        func limit(_ count: Int) -> QuotaLimit {
            self == .program
                ? QuotaLimit(connection: .max, program: count, allPrograms: .max)
                : QuotaLimit(connection: .max, program: .max, allPrograms: count)
        }
    }

    private func clients(_ crowd: Crowd, _ stage: Stage) -> (StageClient, StageClient) {
        (stage.connect(), stage.connect(pid: crowd.secondPID))
    }

    private func send(_ text: String, from client: StageClient) {
        Array(text.utf8).withUnsafeBytes { client.stage.broker.received($0, from: client.id) }
    }

    private func isHandle(_ messages: [JSON]) -> Bool {
        messages.first?["result"]?["body"]?["type"]?.string == "handle"
    }

    @Test(arguments: Crowd.allCases)
    func fetches(crowd: Crowd) throws {
        let stage = Stage { $0.quotaLimits.fetches = crowd.limit(3) }
        let (first, second) = clients(crowd, stage)
        for id in 1...2 { #expect(first.fetch(id: id).isEmpty) }
        #expect(second.fetch(id: 1).isEmpty)
        let refusal = try #require(second.fetch(id: 2).first)
        #expect(refusal.kind == "busy")
        #expect(
            refusal["error"]?["message"]?.string
                == "too many unanswered fetches for \(crowd.words) (limit 3); wait for replies")
        stage.transfers.respond(200)
        #expect(first.hear().count + second.hear().count == 1)
        #expect(second.fetch(id: 3).isEmpty, "one was answered")
        #expect(second.fetch(id: 4).map(\.kind) == ["busy"])
        first.leave()
        #expect(second.fetch(id: 5).isEmpty, "the usage of the closed connection is released")
    }

    @Test func anotherProgramHasRoom() {
        let stage = Stage { $0.quotaLimits.fetches = Crowd.program.limit(1) }
        #expect(stage.connect().fetch().isEmpty)
        #expect(stage.connect().fetch().map(\.kind) == ["busy"])
        #expect(stage.connect(pid: 4712).fetch().isEmpty)
    }

    /// The quota of a process is removed with its last connection, and not before.
    @Test func aProgramIsForgottenWithItsLastConnection() {
        let stage = Stage { $0.quotaLimits.fetches = Crowd.program.limit(1) }
        let (first, second) = (stage.connect(), stage.connect())
        #expect(first.fetch().isEmpty)
        second.leave()
        #expect(stage.connect().fetch().map(\.kind) == ["busy"])
        first.leave()
        #expect(stage.connect().fetch().isEmpty)
    }

    @Test(arguments: Crowd.allCases)
    func requests(crowd: Crowd) {
        let stage = Stage { $0.quotaLimits.requestBytes = crowd.limit(25_000) }
        let (first, second) = clients(crowd, stage)
        let body = #","method":"POST","body":{"type":"string","value":"\#(String(repeating: "x", count: 10_000))"}"#
        #expect(first.fetch(more: body).isEmpty)
        #expect(second.fetch(id: 1, more: body).isEmpty)
        #expect(second.fetch(id: 2, more: body).map(\.kind) == ["busy"])
        first.leave()
        #expect(second.fetch(id: 3, more: body).isEmpty)
    }

    @Test(arguments: Crowd.allCases)
    func bodies(crowd: Crowd) {
        let stage = Stage { $0.quotaLimits.bodies = crowd.limit(2) }
        let (first, second) = clients(crowd, stage)
        let asHandle = #","maxInlineBodyBytes":0"#
        _ = first.fetch(more: asHandle)
        stage.transfers.respond(200, body: "x")
        #expect(isHandle(first.hear()))
        _ = second.fetch(id: 1, more: asHandle)
        stage.transfers.respond(200, body: "x")
        #expect(isHandle(second.hear()))
        _ = second.fetch(id: 2, more: asHandle)
        stage.transfers.respond(200, body: "x")
        #expect(second.hear().map(\.kind) == ["busy"])
        #expect(second.call("fetch/start", #"{"url":"http://h/"}"#)?.kind == "busy")
        first.leave()
        #expect(second.call("fetch/start", #"{"url":"http://h/"}"#)?["result"] != nil)
    }

    @Test(arguments: Crowd.allCases)
    func messages(crowd: Crowd) {
        let stage = Stage { $0.quotaLimits.messageBytes = crowd.limit(2500) }
        let (first, second) = clients(crowd, stage)
        let start = #"{"x":""# + String(repeating: "x", count: 1000)
        send(start, from: first)
        send(start, from: second)
        send(String(repeating: "x", count: 480), from: second)
        #expect(!second.link.isClosed)
        send(String(repeating: "x", count: 100), from: first)
        #expect(second.link.isClosed && !first.link.isClosed, "the client with the highest usage, not the latest one")
        #expect(second.hear().map(\.kind) == ["protocolViolation"])
        send(String(repeating: "x", count: 1000), from: first)
        #expect(!first.link.isClosed, "the partial message of the other client is dropped")
        send("\"}\n", from: first)
        #expect(first.hear().map(\.kind) == ["invalidRequest"])
        let third = stage.connect(pid: crowd.secondPID)
        send(start + start, from: third)
        #expect(!third.link.isClosed, "a complete message does not count")
    }

    @Test(arguments: Crowd.allCases)
    func replies(crowd: Crowd) {
        let stage = Stage { $0.quotaLimits.replyBytes = crowd.limit(100_000) }
        let (first, second) = clients(crowd, stage)
        stage.broker.leftUnread(90_000, first.id)
        _ = second.fetch(id: 1)
        stage.transfers.respond(200, body: String(repeating: "x", count: 6000))
        #expect(isHandle(second.hear()), "the quota is used up")
        _ = second.fetch(id: 2)
        stage.transfers.respond(200, body: "small")
        #expect(!isHandle(second.hear()))
        #expect(!first.link.isClosed && !second.link.isClosed)
        stage.broker.leftUnread(20_000, second.id)
        #expect(first.link.isClosed && !second.link.isClosed, "the client with the most unread bytes, not the latest")
        stage.broker.leftUnread(10_000, second.id)
        let larger = String(repeating: "x", count: crowd == .program ? 10_000 : 30_000)
        for id in 10...12 { _ = second.fetch(id: id) }
        for _ in 10...12 { stage.transfers.respond(200, body: larger) }
        let types = second.hear().map { $0["result"]?["body"]?["type"]?.string }
        #expect(types.first == "string" && types.last == "handle", "bytes queued for the link count")
        stage.broker.leftUnread(0, second.id)
        _ = second.fetch(id: 3)
        stage.transfers.respond(200, body: String(repeating: "x", count: 6000))
        #expect(!isHandle(second.hear()))
    }

    @Test(arguments: Crowd.allCases)
    func responses(crowd: Crowd) throws {
        let stage = Stage { $0.quotaLimits.responseBytes = crowd.limit(1000) }
        let (first, second) = clients(crowd, stage)
        _ = first.fetch()
        let ofFirst = try #require(stage.transfers.lastQuotas.memory)
        _ = second.fetch()
        let ofSecond = try #require(stage.transfers.lastQuotas.memory)
        ofFirst.take(600)
        #expect(ofSecond.hasRoom(for: 400) && !ofSecond.hasRoom(for: 401))
        ofFirst.release(600)
        #expect(ofSecond.hasRoom(for: 1000))
    }

    @Test(arguments: Crowd.allCases)
    func disk(crowd: Crowd) throws {
        let stage = Stage { $0.quotaLimits.diskBytes = crowd.limit(1000) }
        let (first, second) = clients(crowd, stage)
        _ = first.fetch()
        let ofFirst = try #require(stage.transfers.lastQuotas.disk)
        let attach = #"{"url":"http://h/","method":"PUT","body":{"type":"attach"}}"#
        _ = second.call("fetch/start", attach)
        let source = try #require(stage.transfers.sources.keys.max { $0.value < $1.value })
        let ofSecond = try #require(stage.transfers.disk(of: source))
        ofFirst.take(600)
        #expect(ofSecond.hasRoom(for: 400) && !ofSecond.hasRoom(for: 401))
        ofFirst.release(600)
        #expect(ofSecond.hasRoom(for: 1000))
        #expect(stage.transfers.lastQuotas.disk === ofSecond)
    }

    /// A copy of a request body counts like a body in a message.
    @Test(arguments: Crowd.allCases)
    func copies(crowd: Crowd) throws {
        let stage = Stage { $0.quotaLimits.requestBytes = crowd.limit(1000) }
        let (first, second) = clients(crowd, stage)
        let memory = try [first, second].map { client in
            let attach = #"{"url":"http://h/","method":"PUT","body":{"type":"attach"}}"#
            _ = client.call("fetch/start", attach)
            let source = try #require(stage.transfers.sources.keys.max { $0.value < $1.value })
            return try #require(stage.transfers.memory(of: source))
        }
        let free = memory[1].limit - memory[1].usage
        memory[0].take(600)
        #expect(free >= 0 && !memory[1].hasRoom(for: 401))
        memory[0].release(600)
    }

    // MARK: Incomplete batches

    @Test func repliesOfAnIncompleteBatchCountAgainstTheSharedQuota() {
        let stage = Stage { $0.quotaLimits.replyBytes = Crowd.program.limit(100_000) }
        let (first, second) = (stage.connect(), stage.connect())
        let entries = (1...2).map {
            #"{"jsonrpc":"2.0","id":\#($0),"method":"fetch/run","params":{"url":"http://h/"}}"#
        }
        _ = first.say("[\(entries.joined(separator: ","))]")
        _ = second.fetch()
        let response = TransferResponse(status: 200, body: Array(repeating: 0x78, count: 20_000))
        stage.transfers.complete(.success(response), ofRequest: 0)
        #expect(first.hear().isEmpty)
        stage.broker.leftUnread(0, first.id)
        stage.transfers.complete(.success(response), ofRequest: 2)
        #expect(isHandle(second.hear()), "20,000 bytes wait in the batch of the other client")
        stage.transfers.complete(.success(response), ofRequest: 1)
        #expect(first.hear().first?.elements?.count == 2)
        stage.broker.leftUnread(0, first.id)
        _ = second.fetch(id: 2)
        stage.transfers.complete(.success(response), ofRequest: 3)
        #expect(!isHandle(second.hear()), "the batch was sent and read")
    }

    /// One program uses little on each of many connections, and another program uses more on one connection.
    @Test func theProgramWithTheMostUsageOverAllItsConnectionsIsDisconnected() {
        let stage = Stage { $0.quotaLimits.messageBytes = Crowd.allPrograms.limit(10_000) }
        let start = #"{"x":""# + String(repeating: "x", count: 1000)
        let crowd = (0..<8).map { _ in stage.connect(pid: 4711) }
        for one in crowd { send(start, from: one) }
        let neighbour = stage.connect(pid: 4712)
        send(start + start, from: neighbour)
        #expect(!neighbour.link.isClosed && crowd.count { $0.link.isClosed } == 1)
    }
}
