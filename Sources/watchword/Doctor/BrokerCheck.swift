import Glibc
import JSONText
import WatchwordClient
import WatchwordProtocol

/// Checks the socket, whether the broker replies, and the state that it reports.
struct BrokerCheck {
    private let location: SocketLocation

    init(_ location: SocketLocation) { self.location = location }

    var findings: [Finding] {
        let folder = folderFinding
        guard folder.verdict != .bad else { return [folder, ProxyCheck.finding(nil)] }
        do throws(ClientFailure) {
            let connection = try BrokerConnection(location)
            connection.callLimit = Patience.withTheBroker
            let status = try connection.call(ServerStatus())
            return [
                folder, version(status), keyring(try connection.call(KeyringStatus())), lock(status), agents(status),
                ProxyCheck.finding(status), UpstreamCheck.finding(status),
                FrontCheck.finding(try fronts(connection), status),
            ].compactMap { $0 }
        } catch {
            return [folder, failure(error), ProxyCheck.finding(nil)]
        }
    }

    /// The fronts; none if the running broker is older than this program.
    private func fronts(_ connection: BrokerConnection) throws(ClientFailure) -> JSON {
        do throws(ClientFailure) { return try connection.call(FrontList()) } catch {
            guard case .refused(let refusal) = error, refusal.kind == .methodNotFound else { throw error }
            return [:]
        }
    }

    private var folderFinding: Finding {
        let name = "Socket"
        guard location.isShortEnough else {
            return .bad(
                name, "The path \(location.path) is longer than \(SocketLocation.longestPath) bytes.",
                "Set $WATCHWORD_SOCKET or $XDG_RUNTIME_DIR to a shorter path.")
        }
        var facts = stat()
        guard stat(location.folder, &facts) == 0 else {
            let runtime = location.folder.split(separator: "/").dropLast().map { "/\($0)" }.joined()
            guard access(runtime, W_OK) == 0 else {
                return .bad(
                    name, "The directory \(runtime) does not exist, or you cannot write to it.",
                    "pam_systemd creates it when you log in. Without it, set $XDG_RUNTIME_DIR to a directory of yours with mode 0700."
                )
            }
            return .good(name, "\(location.path); the broker creates it when it starts.")
        }
        guard facts.st_uid == getuid() else {
            return .bad(
                name, "The directory \(location.folder) belongs to another user (\(facts.st_uid)).",
                "Remove it, or set $WATCHWORD_SOCKET to a path in a directory of yours.")
        }
        guard facts.st_mode & 0o077 == 0 else {
            return .bad(
                name, "Other users have access to the directory \(location.folder).",
                "Run: chmod 700 \(location.folder)")
        }
        return .good(name, location.path)
    }

    private func failure(_ failure: ClientFailure) -> Finding {
        switch failure {
        case .notRunning:
            .doubtful(
                "Broker", "It is not running.",
                "watchword fetch starts it. For other programs, run: systemctl --user enable --now watchword.socket, or watchwordd"
            )
        case .silent:
            .bad(
                "Broker", "It does not answer.",
                "Check whether it is stopped: ps -o stat,pid -C watchwordd. Resume it with kill -CONT PID, or end it with kill -9 PID."
            )
        case .socketNotTrusted:
            .bad(
                "Broker", failure.description,
                "Set $WATCHWORD_SOCKET or $XDG_RUNTIME_DIR to a path that only you can write to.")
        default:
            .bad(
                "Broker", failure.description,
                "End its process (see pgrep -u $USER watchwordd), and start the broker again.")
        }
    }

    private func version(_ status: JSON) -> Finding {
        let version = (status["version"]?.string ?? "?").shortened
        let text = "Version \(version), process \(status["pid"]?.integer ?? 0)."
        guard version == WatchwordVersion.current else {
            return .doubtful(
                "Broker", "\(text) This program has version \(WatchwordVersion.current).",
                "The broker was started before the last installation. Run: systemctl --user restart watchword, or end its process."
            )
        }
        return .good("Broker", text)
    }

    private func keyring(_ status: JSON) -> Finding {
        let line = KeyringText.line(status)
        switch status["state"]?.string {
        case "usable": return .good("Keyring", "It can be used.")
        case "locked": return .doubtful("Keyring", "It is \(line)", "Run: watchword keyring unlock")
        default:
            if status["kind"]?.string == "disabled" { return .good("Keyring", "It is disabled in the configuration.") }
            return .doubtful(
                "Keyring", "It is \(line)",
                "Logins last for the session only. On a desktop, start gnome-keyring-daemon or another Secret Service.")
        }
    }

    private func lock(_ status: JSON) -> Finding {
        status["session"]?["locked"]?.boolean == true
            ? .doubtful("Lock", "The broker is locked: stored credentials are unavailable.", "Run: watchword unlock")
            : .good("Lock", "The broker is not locked.")
    }

    private func agents(_ status: JSON) -> Finding {
        let names = (status["agents"]?.elements ?? []).compactMap { $0["name"]?.string?.shortened }
        guard names.isEmpty else {
            return .good("Agent", "\(names.joined(separator: ", ")) prompts you for other programs.")
        }
        return .doubtful(
            "Agent", "No agent is registered, so you get no prompts for other programs.",
            "On a desktop: systemctl --user start watchword-agent. In a terminal: watchword agent")
    }
}
