import ArgumentParser
import JSONText

struct DoctorCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "doctor", abstract: "Look at everything that logging in needs, and say how to mend what is wrong.",
        discussion: """
            Nothing is changed, no broker is started, and no server is asked. Ends with 1 if something is bad; what is only \
            worth a look does not count.

            Examples:
              watchword doctor
              watchword doctor --json
            """)

    @Flag(help: "Print what was found as JSON.")
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
