import Glibc
import JSONText
import WatchwordProtocol

/// Describes how long an answer that is stored for the session remains there, from `sessionLimits` of a challenge.
enum SessionText {
    /// Returns the end of a sentence that begins with "for this session"; `nil` if the challenge does not allow the session, or
    /// an older broker does not state the limits.
    static func duration(_ challenge: JSON) -> String? {
        guard let limits = challenge["sessionLimits"], let lifetime = limits["lifetimeMs"]?.integer else { return nil }
        let idle = limits["idleMs"]?.integer
        let unused = idle.flatMap { $0 < lifetime ? "it is unused for \(time($0)) or " : nil } ?? ""
        return "until \(unused)the computer sleeps, at most \(time(lifetime))"
    }

    /// Returns a time in the largest unit in which it is a whole number, rounded up to minutes from two minutes on, so that
    /// the real time is not longer.
    static func time(_ milliseconds: Int) -> String {
        var seconds = (max(0, milliseconds) + 999) / 1000
        if seconds > 120 { seconds = (seconds + 59) / 60 * 60 }
        let units = [(86_400, "day"), (3600, "hour"), (60, "minute"), (1, "second")]
        let (unit, name) = units.first { seconds >= $0.0 && seconds.isMultiple(of: $0.0) } ?? (1, "second")
        return counted(seconds / unit, name)
    }
}

/// Describes a login in a browser, for a terminal.
enum BrowserLoginText {
    /// The limit for the characters of an address, which must be complete to be of use.
    private static let longestAddress = 2000

    /// Returns where to log in, for which scopes, and for how long this is possible; for a login on any device also its code.
    static func lines(_ login: TokenLogin) -> String {
        let scopes = login.scopes.map(\.shortened).joined(separator: ", ")
        let minutes = SessionText.time((login.expiresAt - now).wholeMilliseconds)
        var lines = ["  Log in at \(DisplayURL.text(login.issuer))\(scopes.isEmpty ? "" : " for: \(scopes)")."]
        let address = "    \(login.url.shortened(to: longestAddress))"
        if let device = login.device {
            lines += ["  Open this address on any device, and enter the code, within \(minutes):", address]
            lines.append("    Code: \(device.userCode.shortened)")
            // RFC 8628 section 5.4.
            lines.append("  Continue only if you started this. If someone sent you this code, cancel.")
        } else {
            lines += ["  Open this address in a browser on this machine within \(minutes):", address]
        }
        return lines.joined(separator: "\n") + "\n"
    }

    private static var now: Duration {
        var now = timespec()
        clock_gettime(CLOCK_REALTIME, &now)
        return .seconds(now.tv_sec) + .nanoseconds(now.tv_nsec)
    }
}

/// Names the sources of stored and ambient logins.
enum StoredSource {
    /// Returns the words after "the login", such as "from the keyring"; `nil` for any other source.
    static func words(_ source: String?) -> String? {
        switch source {
        case "session": "from the session"
        case "keyring": "from the keyring"
        case "ambient": "from the Kerberos ticket"
        case "netrc": "from the netrc file"
        case "command": "from the configured command"
        default: nil
        }
    }
}
