import JSONText
import WatchwordProtocol

/// Through which proxy the broker goes. It takes none from its environment, so that a variable that others go by is worth a word.
enum ProxyCheck {
    private static let variables = ["https_proxy", "HTTPS_PROXY", "http_proxy", "all_proxy", "ALL_PROXY"]

    /// - Parameter status: of the broker; `nil` when none runs.
    static func finding(_ status: JSON?) -> Finding {
        let name = "Proxy"
        if let proxy = status?["proxy"]?.string {
            return .good(name, "The broker goes through \(DisplayURL.text(proxy)).")
        }
        // Not its value, which may hold a password.
        guard let variable = variables.first(where: { !(Environment.text($0) ?? "").isEmpty }) else {
            return .good(
                name, "\(status == nil ? "There is" : "None is configured, and there is") none in the environment.")
        }
        return .doubtful(
            name, "$\(variable) names one, and the broker does not go by its environment.",
            "Put it into the configuration: proxy.url, without user and password.")
    }
}
