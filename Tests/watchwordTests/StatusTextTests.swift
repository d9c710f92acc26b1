import JSONText
import Testing

@testable import watchword

@Suite struct StatusTextTests {
    private func lines(entries: Int, opened: Int, reused: Int) -> [String] {
        let status: JSON = [
            "session": ["entries": .integer(entries)],
            "engine": ["connectionsOpened": .integer(opened), "connectionsReused": .integer(reused)],
        ]
        return StatusCommand.text(status, "/run/broker.sock").split(separator: "\n").map(String.init)
    }

    @Test(arguments: [
        (0, "0 saved logins", "0 connections opened, reused 0 times"),
        (1, "1 saved login", "1 connection opened, reused 1 time"),
        (2, "2 saved logins", "2 connections opened, reused 2 times"),
    ])
    func countsHaveSingularAndPlural(count: Int, session: String, network: String) {
        let shown = lines(entries: count, opened: count, reused: count)
        #expect(shown.contains("Session:     \(session)"))
        #expect(shown.contains("Network:     \(network)"))
    }
}
