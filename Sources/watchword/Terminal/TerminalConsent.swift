import JSONText
import WatchwordClient
import WatchwordProtocol

/// Whether a program may use what is kept: `auth/confirm` at the terminal.
struct TerminalConsent {
    let interrupt: Int32

    /// The result of the request; `nil` when there is nothing to answer any more.
    func ask(_ request: IncomingChallenge, at terminal: borrowing Terminal) -> JSON? {
        let params = request.params
        terminal.show(Self.introduction(params))
        let allowed = (params["allows"]?.elements ?? []).compactMap { $0.string.flatMap(Consent.init(rawValue:)) }
        let names = (allowed.filter { $0 != .no }.map(\.rawValue) + ["NO"]).joined(separator: "/")
        while true {
            let line = terminal.readLine(
                "May it? \(names): ", echo: true, interrupt: interrupt, broker: request.descriptor,
                isStillOpen: { request.isStillOpen }, watches: { request.watches })
            switch line {
            case .text(let text):
                let word = text.withUnsafeBytes { String(decoding: $0, as: UTF8.self) }.lowercased()
                if word.isEmpty || ["n", "no"].contains(word) { return ["allow": "no"] }
                if let chosen = allowed.first(where: { $0.rawValue == word || $0.rawValue.prefix(1) == word }) {
                    return ["allow": .string(chosen.rawValue)]
                }
            case .end:
                terminal.show("\n")
                return ["allow": "no"]
            case .withdrawn:
                terminal.show("\nThe question was withdrawn: it was open for too long, or the fetch has ended.\n")
                return nil
            case .interrupted:
                terminal.show("\n")
                return nil
            }
        }
    }

    private static func introduction(_ params: JSON) -> String {
        let user = params["user"]?.string.map { " as \($0.shortened)" } ?? ""
        let place =
            switch params["source"]?.string {
            case "keyring": "of the keyring"
            case "ambient": "with your Kerberos tickets"
            case "netrc": "of the netrc file"
            default: "of the session"
            }
        var lines = [
            "",
            RequesterText.sentence(params)
                + "  It wants to use the log-in \(place) for \(SpaceText.site(params))\(user).",
        ]
        if let note = SpaceText.longHostNote(params) { lines.append(note) }
        if let realm = SpaceText.realm(params) { lines.append("  The server says: \(realm)") }
        if params["subject"]?["strength"]?.string != "strong" {
            lines.append("  Other programs of yours can take its name: say yes only to what you have just done.")
        }
        return lines.joined(separator: "\n") + "\n"
    }
}

/// The words for who asks, safe for a terminal.
enum RequesterText {
    /// The program, as far as the kernel tells it from others.
    static func subject(_ params: JSON) -> String {
        (params["subject"]?["id"] ?? params["requester"]?["subject"])?.string?.shortened(to: 300) ?? "unknown"
    }

    /// One line with its end.
    static func sentence(_ params: JSON) -> String {
        let requester = params["requester"]
        let name = requester?["name"]?.string?.shortened ?? "A program"
        let subject = subject(params)
        let pid = requester?["pid"]?.integer.map { ", process \($0)" } ?? ""
        let far = requester?["restricted"]?.boolean == true ? ", from a container or another machine" : ""
        return "\(name) (\(subject)\(pid)\(far)) asks.\n"
    }
}
