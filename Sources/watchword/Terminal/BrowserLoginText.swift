import Glibc
import WatchwordProtocol

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
