import Testing
import WatchwordProtocol

@testable import Broker

/// The programs that are given passwords.
@Suite struct BrokerHandingOutTests {
    private func kind(_ connected: String, now: String) throws -> String? {
        let host = try HostPattern("h")
        let stage = Stage { $0.handOuts = [HandOutRule(program: "/usr/bin/K", hosts: [host])] }
        let link = FakeClient()
        var peer = PeerIdentity(pid: 1, uid: 1000, executable: connected, subject: Stage.tool)
        peer.executableNow = { now }
        peer.runsFile = { _ in true }
        let id = stage.broker.connectionOpened(link, peer: peer)
        let client = StageClient(stage: stage, link: link, id: id)
        return client.call("credential/get", #"{"protectionSpace":{"protocol":"https","host":"h","port":443}}"#)?.kind
    }

    /// Unicode takes the Kelvin sign for a K: what was another program when it connected stays one.
    @Test func aProgramIsNamedByTheBytesOfItsPath() throws {
        #expect(try kind("/usr/bin/K", now: "/usr/bin/K") == "unknownCredential")
        #expect(try kind("/usr/bin/\u{212A}", now: "/usr/bin/K") == "denied")
        #expect(try kind("/usr/bin/K", now: "/usr/bin/\u{212A}") == "denied")
    }
}
