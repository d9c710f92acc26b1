import ArgumentParser
import JSONText
import WatchwordProtocol

struct GrantsCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        "grants",
        "List and revoke consents. Sandboxed programs need them; with sharing.session = \"ask\", all programs do.",
        examples: "watchword grants list", "watchword grants revoke g3",
        subcommands: [GrantsListCommand.self, GrantsRevokeCommand.self])
}

struct GrantsListCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        "list", "List your consent decisions: which program may use which login, and for how long.",
        examples: "watchword grants list")

    @OptionGroup var call: CallOptions

    func run() throws {
        let heading = ["ID", "PROGRAM", "ALLOWED", "USER", "SITE", "REALM", "SCHEME"]
        try call.show(GrantList(), list: "grants", none: "No consent decisions.", heading: heading) { grant in
            [
                grant.shown("id"), Self.program(grant["subject"]), Self.words(grant["allow"]?.string),
                grant.shown("user"), SpaceText.site(grant), SpaceText.realm(grant) ?? "", SpaceText.scheme(grant) ?? "",
            ]
        }
    }

    /// Returns the subject, followed by the script of an interpreter.
    private static func program(_ subject: JSON?) -> String {
        let parts = [subject?["id"]?.string, subject?["script"]?["path"]?.string]
        return parts.compactMap { $0?.shortened(to: 300) }.joined(separator: " ")
    }

    private static func words(_ consent: String?) -> String {
        switch consent {
        case "session": "for the session"
        case "always": "always"
        case "no": "no"
        case let other: (other ?? "").shortened
        }
    }
}

struct GrantsRevokeCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        "revoke", "Revoke consent decisions, so that you are asked again.",
        examples: "watchword grants revoke g3", "watchword grants revoke --program flatpak:org.gnome.Maps",
        "watchword grants revoke --all")

    @Argument(
        help: "An id from the first column of: watchword grants list",
        completion: .listed(by: GrantList(), "grants", "id"))
    var id: String?

    @Option(
        help: ArgumentHelp("Revoke all grants of a program, as named in the list.", valueName: "program"),
        completion: .listed(by: GrantList(), "grants", "subject", "id"))
    var program: String?

    @Flag(help: "Revoke all grants.")
    var all = false

    @OptionGroup var call: CallOptions

    func validate() throws { _ = try method() }

    func run() throws {
        try call.show(method()) { result in
            let count = result["removed"]?.integer ?? 0
            guard count > 0 else { throw refusal("no such grant; show all with: watchword grants list") }
            return "\(counted(count, "grant")) revoked"
        }
    }

    private func method() throws -> GrantRevoke {
        switch (id, program, all) {
        case (let id?, nil, false):
            guard id.hasPrefix("g"), let number = Int(id.dropFirst()), number > 0 else {
                throw ValidationError("ID must be an id like g3 from the first column of: watchword grants list")
            }
            return GrantRevoke(id: number)
        case (nil, let program?, false): return GrantRevoke(subject: ExactText(program))
        case (nil, nil, true): return GrantRevoke()
        default: throw ValidationError("give one of: ID, --program PROGRAM, --all")
        }
    }
}

struct PromptsCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        "prompts", "List the programs whose questions you have stopped, or allow their questions again.",
        """
        Agents do not receive questions of a stopped program until it is resumed or the broker exits. Its fetches end as \
        if there were no agent. All programs of one interpreter count as one program.
        """,
        examples: "watchword prompts list", "watchword prompts resume exe:/usr/bin/mytool",
        subcommands: [PromptsListCommand.self, PromptsResumeCommand.self])
}

struct PromptsListCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        "list", "Show the programs whose questions you have stopped.", examples: "watchword prompts list")

    @OptionGroup var call: CallOptions

    func run() throws {
        let heading = ["PROGRAM", "STOPPED (MIN AGO)", "QUESTIONS NOT ASKED"]
        try call.show(PromptList(), list: "stopped", none: "No stopped programs.", heading: heading) { entry in
            [
                entry.shown("subject", to: 300), "\((entry["sinceMs"]?.integer ?? 0) / 60_000)",
                "\(entry["unasked"]?.integer ?? 0)",
            ]
        }
    }
}

struct PromptsResumeCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        "resume", "Allow the questions of a program, or of all programs, again.",
        examples: "watchword prompts resume exe:/usr/bin/mytool", "watchword prompts resume --all")

    @Argument(
        help: "A program from the first column of: watchword prompts list",
        completion: .listed(by: PromptList(), "stopped", "subject"))
    var program: String?

    @Flag(help: "Allow the questions of all programs again.")
    var all = false

    @OptionGroup var call: CallOptions

    func validate() throws {
        guard (program == nil) == all else { throw ValidationError("give either a PROGRAM or --all") }
    }

    func run() throws {
        try call.show(PromptResume(subject: program.map { ExactText($0) })) { result in
            let count = result["resumed"]?.integer ?? 0
            guard count > 0 else {
                throw refusal("no stopped program has this name; show all with: watchword prompts list")
            }
            return "\(counted(count, "program")) resumed"
        }
    }
}
