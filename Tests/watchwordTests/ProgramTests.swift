import Testing

@testable import watchword

/// Programs that are run to see how they end.
@Suite(.serialized) struct ProgramTests {
    private func run(_ script: String) -> (status: Int32, lines: [String]) { Program.run("/bin/sh", ["-c", script]) }

    @Test func statusAndOutputAreReturned() {
        let (status, lines) = run("echo one; echo two >&2; exit 3")
        #expect(status == 3 && lines == ["one", "two"])
        #expect(run("kill -9 $$").status < 0)
        #expect(Program.run("/nowhere/at/all", []).status < 0)
    }

    /// Without the time limit, the programs would exit with 0.
    @Test(arguments: ["echo before; sleep 60", "echo before; exec >&- 2>&-; sleep 60"])
    func aProgramThatDoesNotExitIsTerminated(script: String) {
        let (status, lines) = Program.run("/bin/sh", ["-c", script], limit: .seconds(1))
        #expect(status < 0 && lines == ["before"])
    }
}
