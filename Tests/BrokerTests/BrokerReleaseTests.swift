import Testing
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

    /// Unicode treats the Kelvin sign as a K; a program with the Kelvin sign in its path is still a different program.
    @Test func aProgramIsNamedByTheBytesOfItsPath() throws {
        #expect(try kind("/usr/bin/K", now: "/usr/bin/K") == "unknownCredential")
        #expect(try kind("/usr/bin/\u{212A}", now: "/usr/bin/K") == "denied")
        #expect(try kind("/usr/bin/K", now: "/usr/bin/\u{212A}") == "denied")
    }
}
