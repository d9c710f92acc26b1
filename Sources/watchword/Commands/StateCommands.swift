import ArgumentParser
import CPlatform
import JSONText
import WatchwordProtocol

struct KeyringCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        "keyring", "Show or unlock the desktop keyring.", examples: "watchword keyring status",
        subcommands: [KeyringStatusCommand.self, KeyringUnlockCommand.self])
}

struct KeyringStatusCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        "status", "Show whether the keyring is usable, and if not, why.", examples: "watchword keyring status")

    @OptionGroup var call: CallOptions

    func run() throws { try call.show(KeyringStatus(), text: KeyringText.line) }
}

struct KeyringUnlockCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        "unlock", "Unlock the keyring, which asks for its password in its own window.", "Ctrl-C ends the wait.",
        examples: "watchword keyring unlock")

    @OptionGroup var call: CallOptions

    func run() throws {
        try call.show(KeyringUnlock(), within: Patience.withPeople) { status in
            guard status["state"]?.string == "usable" else { throw refusal("keyring is \(KeyringText.line(status))") }
            return "The keyring is unlocked."
        }
    }
}

/// Descriptions of the keyring's state.
enum KeyringText {
    /// Returns the state, and the reason if there is one.
    static func line(_ status: JSON?) -> String {
        let state = (status?["state"]?.string ?? "unknown").shortened
        return status?["reason"]?.string.map { "\(state): \(safe($0))" } ?? state
    }

    /// Prints a warning if the keyring was not used, unless it is disabled.
    static func reportAbsence(_ status: JSON?) {
        guard ["locked", "unavailable"].contains(status?["state"]?.string), status?["kind"]?.string != "disabled" else {
            return
        }
        printError("keyring not used (\(line(status)))")
    }

    /// Makes a sentence safe for a terminal word by word, because `shortened` would truncate it.
    static func safe(_ sentence: String) -> String {
        sentence.split(separator: " ").map { String($0).shortened }.joined(separator: " ")
    }
}

struct SessionCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        "session", "Manage the logins of the session.", examples: "watchword session clear",
        subcommands: [SessionClearCommand.self])
}

struct SessionClearCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        "clear", "Remove all logins from the session, or only the logins of one server or proxy.",
        "The keyring is not changed.",
        examples: "watchword session clear", "watchword session clear https://intranet.example",
        "watchword session clear socks5h://proxy.example:1080", "watchword session clear --since 1h")

    @Argument(help: "The URL of a server or proxy, like https://host:port or socks5h://host:port; a path is ignored.")
    var site: String?

    @Option(
        help: ArgumentHelp(
            "Only logins stored since this local time: 2026-11-21T17:20, or an age: 15m, 2h.",
            valueName: "time"))
    var since: LogStart?

    @OptionGroup var call: CallOptions

    func validate() throws { _ = try site.map(Self.origin) }

    private static func origin(_ site: String) throws -> String {
        guard site.lowercased().hasPrefix("socks"), SecretArguments.taken.userInfos.isEmpty else {
            return try Site(site).origin
        }
        return site
    }

    func run() throws {
        let since = since.map { Duration.milliseconds($0.milliseconds) }
        try call.show(SessionClear(origin: try site.map(Self.origin), since: since)) { result in
            "\(counted(result["removed"]?.integer ?? 0, "login")) forgotten"
        }
    }
}

struct LockCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        "lock", "Forget the logins of the session; use and store no credentials until unlocked.",
        """
        Fetches continue, but use only logins that are entered for them. The keyring is neither used nor changed. If a \
        passphrase is given, unlocking requires it.
        """,
        examples: "watchword lock", "watchword lock --passphrase")

    @OptionGroup var passphrase: PassphraseOptions
    @OptionGroup var call: CallOptions

    func run() throws {
        try call.show(BrokerLock(passphrase: passphrase.read(isNew: true))) { _ in
            "Locked: stored credentials are neither used nor added. To unlock, run: watchword unlock"
        }
    }
}

struct UnlockCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        "unlock", "Let the broker use and store credentials again.",
        """
        The session remains empty until the next login. The keyring has its own lock. After each wrong passphrase, the \
        delay before the next attempt grows.
        """,
        examples: "watchword unlock", "watchword unlock --passphrase")

    @OptionGroup var passphrase: PassphraseOptions
    @OptionGroup var call: CallOptions

    func run() throws {
        try call.show(BrokerUnlock(passphrase: passphrase.read(isNew: false))) { _ in "Unlocked." }
    }
}

struct PassphraseOptions: ParsableArguments {
    @Flag(help: "Ask for a passphrase at the terminal.")
    var passphrase = false

    @Flag(help: "Read a passphrase from standard input: one line.")
    var passphraseStdin = false

    func validate() throws {
        guard !passphrase || !passphraseStdin else {
            throw ValidationError("--passphrase and --passphrase-stdin exclude each other; give one of them")
        }
    }

    /// Returns the passphrase; `nil` if neither option was given.
    func read(isNew: Bool) throws -> Secret? {
        if passphraseStdin { return try PasswordEntry.fromStandardInput() }
        guard passphrase else { return nil }
        return try PasswordEntry.passphrase(isNew: isNew, interrupt: watchword_interrupt_descriptor())
    }
}

struct StatusCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        "status", "Show the status of the broker.", examples: "watchword status")

    @OptionGroup var call: CallOptions

    func run() throws { try call.show(ServerStatus()) { Self.text($0, call.broker.location.path) } }

    /// Returns the status as lines.
    /// - Parameter path: The path of the socket.
    static func text(_ status: JSON, _ path: String) -> String {
        let number = { (names: String...) in names.reduce(status as JSON?) { $0?[$1] }?.integer ?? 0 }
        let opened = counted(number("engine", "connectionsOpened"), "connection")
        let reused = counted(number("engine", "connectionsReused"), "time")
        let (fetches, challenges) = (
            [number("fetches", "running"), number("fetches", "waiting"), number("fetches", "done")],
            [number("challenges", "pending"), number("challenges", "answered"), number("challenges", "timedOut")]
        )
        let agents = status.list("agents").map { agent in
            "\((agent["name"]?.string ?? "?").shortened) (priority \(agent["priority"]?.integer ?? 0))"
        }
        let isLocked = status["session"]?["locked"]?.boolean == true
        let rows = [
            ("Broker", "\(status["version"]?.string ?? "?"), process \(number("pid")), up \(time(number("uptimeMs")))"),
            ("Socket", path), ("Connections", "\(number("connections"))"),
            ("Fetches", "\(fetches[0]) running (\(fetches[1]) waiting for another login), \(fetches[2]) done"),
            ("Challenges", "\(challenges[0]) open, \(challenges[1]) answered, \(challenges[2]) timed out"),
            ("Agents", agents.isEmpty ? "none" : agents.joined(separator: ", ")),
            ("Session", counted(number("session", "entries"), "saved login")),
            ("Keyring", KeyringText.line(status["keyring"])),
            ("Locked", isLocked ? "yes; unlock with: watchword unlock" : "no"),
            ("Filter", status["systemCallFilter"]?.boolean == true ? "system calls are filtered" : "none"),
            ("Network", "\(opened) opened, reused \(reused)"),
        ]
        return rows.map { name, text in
            "\(name):" + String(repeating: " ", count: 12 - name.count) + text
        }.joined(separator: "\n")
    }

    private static func time(_ milliseconds: Int) -> String {
        let seconds = milliseconds / 1000
        return seconds < 3600
            ? "\(seconds / 60) min \(seconds % 60) s" : "\(seconds / 3600) h \(seconds % 3600 / 60) min"
    }
}

struct FrontCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        "front", "Show the local proxies and sites that the broker serves.", examples: "watchword front status",
        subcommands: [FrontStatusCommand.self])
}

struct FrontStatusCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        "status", "Show the fronts of the configuration, of \"watchword run\" and of \"watchword serve\".",
        "Exits with 1 if a front of the configuration does not listen.", examples: "watchword front status")

    @OptionGroup var call: CallOptions

    func run() throws {
        let heading = ["ADDRESS", "SERVES", "OPENED BY", "CONNECTIONS", "REQUESTS", "NAME FOR BROWSERS"]
        let result = try call.show(FrontList(), list: "fronts", none: "No fronts.", heading: heading) { front in
            [
                front.shown("listen", to: 120), (front["url"]?.string ?? "any site (proxy)").shortened(to: 200),
                front["problem"] != nil
                    ? "not listening" : front["pid"]?.integer.map { "process \($0)" } ?? "configuration",
                "\(front["connections"]?.integer ?? 0)", "\(front["requests"]?.integer ?? 0)",
                front.shown("name", to: 120),
            ]
        }
        let problems = result.list("fronts").compactMap { $0["problem"]?.string }
        for problem in problems { printError(problem) }
        if !problems.isEmpty { throw ExitCode(ExitStatus.refused) }
    }
}
