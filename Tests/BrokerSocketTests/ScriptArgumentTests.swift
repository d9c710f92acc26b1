import Testing

@testable import BrokerSocket

/// The script in the command line of an interpreter (SECURITY-RULES I7).
@Suite struct ScriptArgumentTests {
    private func find(_ program: String, _ arguments: [String]) -> String? {
        ScriptArgument.find(in: arguments.flatMap { Array($0.utf8) + [0] }, of: "/usr/bin/\(program)")
    }

    @Test(
        "Rule I7: the script is the first argument that is not an option",
        arguments: [
            ("python3.11", ["python3", "s", "-c", "x"]),
            ("python3", ["python3", "-I", "-Wd", "-W", "error", "-Xdev", "-X", "dev", "s"]),
            ("python3", ["python3", "-bEWd", "s"]), ("python3", ["python3", "-uEW", "d", "s"]),
            ("pypy3", ["pypy3", "-u", "s"]),
            ("python3", ["python3", "--check-hash-based-pycs", "never", "--", "s"]),
            ("python3.11", ["anything at all", "s"]),
            ("perl", ["perl", "s"]), ("perl5.36.0", ["perl", "-wT", "-l012", "-0777", "-l", "--", "s"]),
            ("node", ["node", "s", "-e"]), ("node", ["node", "--max-old-space-size=64", "--no-warnings", "s"]),
            ("nodejs", ["node", "--", "s"]), ("node", ["node", "--max-http-header-size", "/other", "s"]),
            ("ruby", ["ruby", "--encoding", "/other", "s"]),
            (
                "ruby3.1",
                ["ruby", "-w", "-W0", "-W:no-deprecated", "-E", "UTF-8", "-EUTF-8", "--disable=gems", "--yjit", "s"]
            ),
            ("bash", ["bash", "s"]), ("bash", ["bash", "--norc", "-eu", "-o", "pipefail", "s"]),
            ("bash", ["bash", "-euo", "pipefail", "s"]),
            ("bash", ["bash", "-oO", "posix", "nullglob", "+x", "+O", "nullglob", "s"]), ("bash", ["-bash", "-", "s"]),
            ("dash", ["sh", "-e", "s"]), ("dash", ["sh", "--", "s"]),
        ] as [(String, [String])])
    func theScriptIsTheFirstArgumentThatIsNotAnOption(program: String, arguments: [String]) {
        #expect(find(program, arguments) == "s")
    }

    @Test(
        "Rule I7: other code than a script, and unknown options, leave an interpreter unidentified",
        arguments: [
            ("python3", ["python3"]), ("python3", ["python3", "-"]), ("python3", ["python3", "-c", "s"]),
            ("python3", ["python3", "-cs", "s"]),
            ("python3", ["python3", "-m", "s"]), ("python3", ["python3", "-Imjson", "s"]),
            ("python3", ["python3", "-i", "s"]),
            ("python3", ["python3", "-W"]), ("python3", ["python3", "-Z", "s"]),
            ("python3", ["python3", "--unknown", "s"]),
            ("python3", ["python3", ""]), ("python3", ["python3", "--"]), ("python3", []),
            ("python3", ["python3", "-ü", "s"]),
            ("perl", ["perl", "-e", "1", "s"]), ("perl", ["perl", "-le", "1", "s"]), ("perl", ["perl", "-wE1", "s"]),
            ("perl", ["perl", "-"]),
            ("perl", ["perl", "-Mevil", "s"]), ("perl", ["perl", "-I", "/home", "s"]), ("perl", ["perl", "-S", "s"]),
            ("perl", ["perl", "-x", "s"]),
            ("node", ["node", "-e", "1"]), ("node", ["node", "-r", "./evil", "s"]),
            ("node", ["node", "--import=evil", "s"]),
            ("node", ["node", "--eval=1", "s"]), ("node", ["node", "--require", "evil", "s"]),
            ("ruby", ["ruby", "-e", "1"]), ("ruby", ["ruby", "-rjson", "s"]), ("ruby", ["ruby", "-C", "/home", "s"]),
            ("ruby", ["ruby", "-ne", "1", "s"]),
            ("bash", ["bash", "-c", "s", "s"]), ("bash", ["bash", "-lc", "s"]),
            ("bash", ["bash", "-euoc", "pipefail", "s"]),
            ("bash", ["bash", "-s", "s"]), ("bash", ["bash", "-i", "s"]), ("bash", ["bash", "--rcfile", "evil", "s"]),
            ("bash", ["-bash"]),
            ("bash", ["bash", "-o"]), ("bash", ["bash", "+c", "s"]), ("dash", ["sh", "-ec", "s"]),
            ("java", ["java", "s"]), ("env", ["env", "s"]), ("mytool", ["mytool", "s"]), ("", ["x", "s"]),
        ] as [(String, [String])])
    func otherCodeLeavesAnInterpreterUnidentified(program: String, arguments: [String]) {
        #expect(find(program, arguments) == nil)
    }

    private let python = "/usr/bin/python3"

    @Test func everyCharacterOfAPathIsPreserved() {
        #expect(find("python3", ["python3", "/a b\n\u{1B}[2J/ü.py", "x"]) == "/a b\n\u{1B}[2J/ü.py")
        #expect(ScriptArgument.find(in: Array("python3\0/".utf8) + [0xFF, 0], of: python) == nil)
    }

    @Test func anIncompleteArgumentIsNotUsed() {
        #expect(ScriptArgument.find(in: Array("python3\0/usr/bin/re".utf8), of: python) == nil)
        #expect(ScriptArgument.find(in: Array("python3 /usr/bin/report".utf8), of: python) == nil)
        #expect(ScriptArgument.find(in: [], of: python) == nil && ScriptArgument.find(in: [0], of: python) == nil)
        // The rest of a long command line may be missing.
        #expect(
            ScriptArgument.find(in: Array("python3\0s\0".utf8) + [UInt8](repeating: 0x61, count: 1 << 20), of: python)
                == "s")
        let zeros = [UInt8](repeating: 0, count: 1 << 20)
        #expect(ScriptArgument.find(in: Array("python3\0".utf8) + zeros, of: python) == nil)
    }
}
