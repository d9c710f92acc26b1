import Foundation
import Glibc
import JSONText
import Testing
import WatchwordClient
import WatchwordProtocol

@Suite struct WaitingTests {
    private static let challenge =
        #"{"jsonrpc":"2.0","id":7,"method":"auth/challenge","params":{"fetchId":"f1"}}"# + "\n"

    private func read(_ descriptor: Int32) -> String {
        var bytes = [UInt8](repeating: 0, count: 100)
        var entry = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
        poll(&entry, 1, 5000)
        let count = Glibc.read(descriptor, &bytes, bytes.count)
        return String(decoding: bytes.prefix(max(0, count)), as: UTF8.self)
    }

    @Test func theBodyFollowsTheReply() throws {
        let peer = ScriptedPeer { _ in #"{"jsonrpc":"2.0","id":1,"result":{}}"# + "\n{\"body\":1}\n" }
        let stream = try AttachedStream(peer.location, token: "t", side: .response)
        #expect(read(stream.descriptor) == "{\"body\":1}\n")
    }

    @Test func aRefusedAttachmentHasItsReason() {
        let peer = ScriptedPeer { _ in
            #"{"jsonrpc":"2.0","id":1,"error":{"code":1008,"message":"none","data":{"kind":"unknownFetch"}}}"# + "\n"
        }
        #expect(throws: ClientFailure.self) { try AttachedStream(peer.location, token: "t", side: .request) }
    }

    @Test func anEndlessReplyIsAnError() {
        let peer = ScriptedPeer { _ in String(repeating: "x", count: 1 << 17) }
        #expect(throws: ClientFailure.self) { try AttachedStream(peer.location, token: "t", side: .request) }
    }

    @Test func aSilentBrokerDoesNotDelayAnInterrupt() throws {
        let peer = ScriptedPeer { _ in nil }
        let connection = try BrokerConnection(peer.location)
        var ends: [Int32] = [0, 0]
        #expect(pipe(&ends) == 0 && write(ends[1], "x", 1) == 1)
        defer { for end in ends { close(end) } }
        connection.interruptDescriptor = ends[0]
        #expect(throws: ClientFailure.interrupted(signal: 1)) { try connection.attach(token: "t", side: .response) }
        // The interrupt is read once, and remembered.
        #expect(throws: ClientFailure.interrupted(signal: 1)) { try connection.attach(token: "t", side: .response) }
        #expect(throws: ClientFailure.interrupted(signal: 1)) { try connection.wait { false } }
    }

    @Test func aQuestionReceivedDuringACallIsDeliveredAfterIt() throws {
        let peer = ScriptedPeer { line in
            line.contains("auth") || line.contains("action")
                ? #"{"jsonrpc":"2.0","method":"fetch/completed","params":{}}"# + "\n"
                : Self.challenge + #"{"jsonrpc":"2.0","id":1,"result":{"fetchId":"f1"}}"# + "\n"
        }
        let connection = try BrokerConnection(peer.location)
        var events: [String] = []
        connection.onChallenge = { challenge in
            events.append("asked about \(challenge.params["fetchId"]?.string ?? "")")
            return .proceed
        }
        connection.onNotification = { method, _ in events.append(method) }
        events.append(try connection.call(FetchStart.name, [:])["fetchId"]?.string ?? "")
        try connection.wait { events.contains("fetch/completed") }
        #expect(events == ["f1", "asked about f1", "fetch/completed"])
    }

    @Test func messagesThatCameWithAQuestionAreHandledWhileItIsAsked() throws {
        let others = [
            #"{"jsonrpc":"2.0","method":"fetch/headers","params":{}}"#,
            #"{"jsonrpc":"2.0","id":8,"method":"auth/challenge","params":{"fetchId":"f2"}}"#,
            #"{"jsonrpc":"2.0","method":"$/cancelRequest","params":{"id":7}}"#,
        ]
        let peer = ScriptedPeer { _ in
            #"{"jsonrpc":"2.0","id":1,"result":{}}"# + "\n" + Self.challenge + others.joined(separator: "\n") + "\n"
        }
        let connection = try BrokerConnection(peer.location)
        var events: [String] = []
        connection.onNotification = { method, _ in events.append(method) }
        connection.onChallenge = { challenge in
            let isOpen = challenge.isStillOpen(isReadable: false)
            events.append("\(challenge.params["fetchId"]?.string ?? "") \(isOpen ? "open" : "withdrawn")")
            return nil
        }
        try connection.call(FetchStart.name, [:])
        try connection.wait { events.count == 3 }
        #expect(events == ["fetch/headers", "f1 withdrawn", "f2 open"])
    }

    @Test func watchesAreServedWhileWaiting() throws {
        let peer = ScriptedPeer { _ in nil }
        let connection = try BrokerConnection(peer.location)
        var ends: [Int32] = [0, 0]
        #expect(pipe(&ends) == 0 && write(ends[1], "x", 1) == 1)
        defer { for end in ends { close(end) } }
        var seen = ""
        connection.watches = { [Watch(ends[0]) { seen += read(ends[0]) }] }
        try connection.wait { !seen.isEmpty }
        #expect(seen == "x")
    }

    @Test func anInterruptThatComesTooLateForACallEndsTheNextWait() throws {
        let peer = ScriptedPeer { line in
            line.contains("cancelRequest") ? #"{"jsonrpc":"2.0","id":1,"result":{"fetchId":"f1"}}"# + "\n" : ""
        }
        let connection = try BrokerConnection(peer.location)
        var ends: [Int32] = [0, 0]
        #expect(pipe(&ends) == 0 && write(ends[1], "x", 1) == 1)
        defer { for end in ends { close(end) } }
        connection.interruptDescriptor = ends[0]
        #expect(try connection.call(FetchStart.name, [:])["fetchId"]?.string == "f1")
        connection.maxWait = { .seconds(2) }
        var looks = 0
        #expect(throws: ClientFailure.interrupted(signal: 1)) {
            try connection.wait {
                looks += 1
                return looks == 3
            }
        }
    }

    @Test func aWaitEndsAtItsMaximumAndIsRepeated() throws {
        let peer = ScriptedPeer { _ in nil }
        let connection = try BrokerConnection(peer.location)
        var looks = 0
        connection.maxWait = { .milliseconds(5) }
        try connection.wait {
            looks += 1
            return looks == 3
        }
        #expect(looks == 3)
    }
}
