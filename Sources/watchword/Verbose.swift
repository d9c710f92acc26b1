import JSONText
import WatchwordProtocol

/// What `-v` shows.
enum Verbose {
    static func show(_ method: String, _ params: JSON?) {
        if method == BrokerMethodName.fetchCompleted.rawValue {
            for line in UnansweredText.lines(params) { StandardError.write(line: "* \(line)") }
        }
        let status = params?["status"]?.integer ?? 0
        let text: String? =
            switch method {
            case BrokerMethodName.fetchRedirect.rawValue:
                "status \(status): on to \(params?["to"]?.string.map(DisplayURL.text) ?? "")"
            case BrokerMethodName.fetchHeaders.rawValue: "status \(status)"
            case BrokerMethodName.serverClosing.rawValue: "the broker is closing"
            default: nil
            }
        if let text { StandardError.write(line: "* \(text)") }
    }
}
