import Glibc
import JSONText
import WatchwordClient
import WatchwordProtocol

/// The socket, the broker behind it, and what it says of itself.
struct BrokerCheck {
    private let location: SocketLocation

    init(_ location: SocketLocation) { self.location = location }

    var findings: [Finding] {
        let folder = folderFinding
        guard folder.verdict != .bad else { return [folder, ProxyCheck.finding(nil)] }
        do throws(ClientFailure) {
            let connection = try BrokerConnection(location)
            connection.callLimit = Patience.withTheBroker
            let status = try connection.call(.serverStatus)
            return [
                folder, version(status), keyring(try connection.call(.keyringStatus)), lock(status), agents(status),
                ProxyCheck.finding(status),
            ]
        } catch {
            return [folder, failure(error), ProxyCheck.finding(nil)]
        }
    }

    private var folderFinding: Finding {
        let name = "Socket"
        guard location.isShortEnough else {
            return .bad(
                name, "The path \(location.path) is longer than \(SocketLocation.longestPath) bytes.",
                "Set $WATCHWORD_SOCKET, or $XDG_RUNTIME_DIR, to a shorter one.")
        }
        var facts = stat()
        guard stat(location.folder, &facts) == 0 else {
            let runtime = location.folder.split(separator: "/").dropLast().map { "/\($0)" }.joined()
            guard access(runtime, W_OK) == 0 else {
                return .bad(
                    name, "There is no folder \(runtime) that you may write to.",
                    "It is made when you log in (pam_systemd). Without that set $XDG_RUNTIME_DIR to a folder of yours, mode 0700."
                )
            }
            return .good(name, "\(location.path), which the broker makes when it starts.")
        }
        guard facts.st_uid == getuid() else {
            return .bad(
                name, "The folder \(location.folder) belongs to another user (\(facts.st_uid)).",
                "Remove it, or set $WATCHWORD_SOCKET to a place of your own.")
        }
        guard facts.st_mode & 0o077 == 0 else {
            return .bad(
                name, "Others may look into the folder \(location.folder).", "Run: chmod 700 \(location.folder)")
        }
        return .good(name, location.path)
    }

    private func failure(_ failure: ClientFailure) -> Finding {
        switch failure {
        case .notRunning:
            .doubtful(
                "Broker", "None is running.",
                "It is started with the first watchword fetch; for other programs: systemctl --user enable --now watchword.socket, or run watchwordd."
            )
        case .silent:
            .bad(
                "Broker", "It does not answer.",
                "Look whether it is stopped (ps -o stat,pid -C watchwordd): kill -CONT, or kill it, and try again.")
        case .socketNotTrusted:
            .bad("Broker", failure.description, "Set $WATCHWORD_SOCKET, or $XDG_RUNTIME_DIR, to a directory of yours.")
        default:
            .bad("Broker", failure.description, "End it (its process: pgrep -u $USER watchwordd), and start it anew.")
        }
    }

    private func version(_ status: JSON) -> Finding {
        let version = (status["version"]?.string ?? "?").shortened
        let text = "Version \(version), process \(status["pid"]?.integer ?? 0)."
        guard version == WatchwordVersion.current else {
            return .doubtful(
                "Broker", "\(text) This watchword has version \(WatchwordVersion.current).",
                "The broker was started before the last installation. Run: systemctl --user restart watchword, or kill it."
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
            if status["kind"]?.string == "disabled" { return .good("Keyring", "The configuration leaves it out.") }
            return .doubtful(
                "Keyring", "It is \(line)",
                "Log-ins last for the session. On a desktop start gnome-keyring-daemon or another Secret Service.")
        }
    }

    private func lock(_ status: JSON) -> Finding {
        status["session"]?["locked"]?.boolean == true
            ? .doubtful("Lock", "The broker is locked: nothing that is kept is used.", "Run: watchword unlock")
            : .good("Lock", "The broker is not locked.")
    }

    private func agents(_ status: JSON) -> Finding {
        let names = (status["agents"]?.elements ?? []).compactMap { $0["name"]?.string?.shortened }
        guard names.isEmpty else {
            return .good("Agent", "\(names.joined(separator: ", ")) asks you for other programs.")
        }
        return .doubtful(
            "Agent", "There is none: programs that cannot ask you themselves get no log-in.",
            "On a desktop: systemctl --user start watchword-agent. In a terminal: watchword agent")
    }
}
