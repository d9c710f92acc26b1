import ArgumentParser
import JSONText

struct DoctorCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "doctor", abstract: "Diagnose login problems and suggest fixes.",
        discussion: """
            Changes nothing, starts no broker, and contacts no server. Exits with 1 if a finding is marked "bad"; warnings do \
            not count.

            Examples:
              watchword doctor
              watchword doctor --json
            """)

    @Flag(help: "Print the findings as JSON.")
    var json = false

    @OptionGroup var broker: SocketOption

    func run() throws {
        let findings = BrokerCheck(broker.location).findings + EnvironmentCheck().findings
        if json {
            let all: JSON = ["findings": .array(findings.map(\.json))]
            print(all.line)
        } else {
            for finding in findings { print(finding.line) }
        }
        if findings.contains(where: { $0.verdict == .bad }) { throw ExitCode(ExitStatus.refused) }
    }
}
