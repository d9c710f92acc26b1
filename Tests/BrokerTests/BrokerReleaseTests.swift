import Testing
import WatchwordCore
import WatchwordProtocol

@testable import Broker

/// The programs to which passwords are released.
@Suite struct BrokerHandingOutTests {
    private func kind(_ connected: String, now: String) throws -> String? {
        let host = try HostPattern("h")
        let stage = Stage { $0.releaseRules = [ReleaseRule(program: "/usr/bin/K", hosts: [host])] }
        let link = FakeClient()
        var peer = PeerIdentity(pid: 1, uid: 1000, executable: connected, subject: Stage.tool)
        peer.process = FakeProcess(executable: now, subject: Stage.tool)
        let id = stage.broker.connectionOpened(link, peer: peer)
        let client = StageClient(stage: stage, link: link, id: id)
        return client.call("credential/get", #"{"protectionSpace":{"protocol":"https","host":"h","port":443}}"#)?.kind
    }

    /// A process can send a request, and then become the named program, before the broker looks at it.
    @Test("Rule I1: a request that was sent before the program was identified releases no password")
    func aRequestFromBeforeTheIdentificationIsRefused() throws {
        let host = try HostPattern("h")
        let stage = Stage { $0.releaseRules = [ReleaseRule(program: "/usr/bin/K", hosts: [host])] }
        func call(_ id: Int) -> String {
            #"{"jsonrpc":"2.0","id":\#(id),"method":"credential/get","params":{"protectionSpace":{"protocol":"https","host":"h","port":443}}}"#
        }
        let link = FakeClient()
        var peer = PeerIdentity(pid: 1, uid: 1000, executable: "/usr/bin/K", subject: Stage.tool)
        peer.process = FakeProcess(executable: "/usr/bin/K", subject: Stage.tool)
        // The whole first request and the beginning of the second one.
        peer.earlyBytes = call(1).utf8.count + 21
        let client = StageClient(stage: stage, link: link, id: stage.broker.connectionOpened(link, peer: peer))
        let text = Array((call(1) + "\n" + call(2) + "\n").utf8)
        var kinds: [String?] = []
        for part in [text[..<peer.earlyBytes], text[peer.earlyBytes...]] {
            Array(part).withUnsafeBytes { stage.broker.received($0, from: client.id) }
            kinds += client.hear().map(\.kind)
        }
        kinds += client.say(call(3)).map(\.kind)
        #expect(kinds == ["denied", "denied", "unknownCredential"])
    }

    /// Unicode treats the Kelvin sign as a K; a program with the Kelvin sign in its path is still a different program.
    @Test func aProgramIsNamedByTheBytesOfItsPath() throws {
        #expect(try kind("/usr/bin/K", now: "/usr/bin/K") == "unknownCredential")
        #expect(try kind("/usr/bin/\u{212A}", now: "/usr/bin/K") == "denied")
        #expect(try kind("/usr/bin/K", now: "/usr/bin/\u{212A}") == "denied")
    }
}
