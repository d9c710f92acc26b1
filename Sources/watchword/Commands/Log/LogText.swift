import JSONText
import WatchwordProtocol

/// One event as a line for people: when, who, what, where, as whom. Nothing in it acts on a terminal.
enum LogText {
    static func line(_ event: JSON) -> String {
        let time = (event["time"]?.string ?? "?").shortened
        return "\(time)  \(who(event["client"]))  \(what(event))"
    }

    /// The program first, which the kernel has named, and what it calls itself behind it.
    private static func who(_ client: JSON?) -> String {
        guard let client else { return "the broker" }
        let path = client["executable"]?.string
        let program = path.map { String($0.split(separator: "/").last ?? "?").shortened }
        let name = client["name"]?.string?.shortened
        let pid = client["pid"]?.integer ?? 0
        let own = name.flatMap { program == nil || $0 == program ? nil : " \"\($0)\"" } ?? ""
        return "\(program ?? name ?? "unknown")[\(pid)]\(own)"
    }

    private static func what(_ event: JSON) -> String {
        let (site, user, source) = (site(event), user(event), source(event))
        switch event["kind"]?.string {
        case "credentialUsed": return "used a log-in for \(site)\(user)\(source)"
        case "credentialRefused": return "was refused by \(site)\(user)\(source)"
        case "certificateUsed": return "showed a client certificate to \(site)\(source)"
        case "certificateRefused": return "showed a client certificate that \(site) refused\(source)"
        case "trustAccepted": return "accepted the certificate of \(site)\(persistence(event))\(source)"
        case "challengeAsked": return "\(asked(event)) about \(site)"
        case "challengeAnswered":
            return "got the answer \"\((event["action"]?.string ?? "?").shortened)\" about \(site), \(answerer(event))"
        case "challengeUnanswered":
            return "got no answer about \(site)\(reason(event))"
        case "consentAsked":
            return "wants to use a log-in for \(site)\(user)\(source); \(who(event["agent"])) was asked"
        case "consentAnswered": return "\(consent(event)) a log-in for \(site)\(user)\(source)\(consenter(event))"
        case "grantRevoked": return "revoked \(event["count"]?.integer ?? 0) grants"
        case "promptsStopped": return "wants no more questions of \(subject(event))"
        case "promptsResumed": return "lets \(subject(event)) ask again"
        case "credentialStored": return "stored a log-in for \(site)\(user)\(place(event))"
        case "credentialForgotten": return "forgot a log-in for \(site)\(user)\(place(event))"
        case "credentialDefaultChanged": return "made another log-in the first for \(site)\(user)\(place(event))"
        case "credentialHandedOut": return "was given the password for \(site)\(user)\(source)"
        case "sessionCleared": return "cleared the session\(scope(event))\(count(event))\(reason(event))"
        case "locked": return "locked the broker"
        case "unlocked": return "unlocked the broker"
        case "denied": return "was denied\(scope(event))\(reason(event))"
        case "eventsLost": return "did not write \(event["count"]?.integer ?? 0) events that belong here"
        case let other: return "did what this watchword does not know: \((other ?? "?").shortened)"
        }
    }

    private static func site(_ event: JSON) -> String {
        guard event["protectionSpace"] != nil else {
            return event["origin"]?.string.map(DisplayURL.origin) ?? "a server"
        }
        let parts = [SpaceText.realm(event).map { "\"\($0)\"" }, SpaceText.scheme(event)].compactMap(\.self)
        let space = parts.isEmpty ? "" : " (\(parts.joined(separator: ", ")))"
        guard SpaceText.isProxy(event) else { return SpaceText.site(event) + space }
        let way = event["origin"]?.string.map { " on the way to \(DisplayURL.origin($0))" } ?? ""
        return "t\(SpaceText.site(event).dropFirst())\(space)\(way)"
    }

    private static func user(_ event: JSON) -> String { event["user"]?.string.map { " as \($0.shortened)" } ?? "" }

    private static func source(_ event: JSON) -> String {
        switch event["source"]?.string {
        case "session": ", from the session"
        case "keyring": ", from the keyring"
        case "ambient": ", by Kerberos tickets"
        case "netrc": ", which was in the netrc file"
        case "explicit": ", which it brought itself"
        case "url": ", which was in its URL"
        case "client": ", as it answered itself"
        case "agent": ", as an agent answered"
        case let other?: ", from \(other.shortened)"
        case nil: ""
        }
    }

    private static func subject(_ event: JSON) -> String { (event["subject"]?.string ?? "?").shortened(to: 300) }

    private static func place(_ event: JSON) -> String {
        event["source"]?.string.map { " in the \($0.shortened)" } ?? ""
    }

    private static func persistence(_ event: JSON) -> String {
        switch event["persistence"]?.string {
        case "forSession": " for the session"
        case "permanent": " for good"
        default: " for one fetch"
        }
    }

    private static func asked(_ event: JSON) -> String {
        event["by"]?.string == "agent" ? "has \(who(event["agent"])) asked" : "was asked"
    }

    private static func answerer(_ event: JSON) -> String {
        switch event["by"]?.string {
        case "agent": "by \(who(event["agent"]))"
        case "deadline": "by nobody in time"
        default: "by itself"
        }
    }

    private static func consent(_ event: JSON) -> String {
        switch event["action"]?.string {
        case "once": "may use, for one fetch,"
        case "session": "may use, for the session,"
        case "always": "may always use"
        default: "may not use"
        }
    }

    private static func consenter(_ event: JSON) -> String {
        switch event["by"]?.string {
        case "agent": ", says \(who(event["agent"]))"
        case "deadline": ": nobody has answered in time"
        default: ": there is nobody to ask"
        }
    }

    private static func scope(_ event: JSON) -> String {
        event["origin"]?.string.map { " for \(DisplayURL.origin($0))" } ?? ""
    }

    private static func count(_ event: JSON) -> String { event["count"]?.integer.map { ", \($0) log-ins" } ?? "" }

    private static func reason(_ event: JSON) -> String { event["reason"]?.string.map { ": \($0.shortened)" } ?? "" }
}
