import JSONText
import WatchwordProtocol

/// Checks the broker's proxy. A proxy variable in the environment causes a warning, because the broker ignores it.
enum ProxyCheck {
    private static let variables = ["https_proxy", "HTTPS_PROXY", "http_proxy", "all_proxy", "ALL_PROXY"]

    /// - Parameter status: The status of the broker; `nil` if none is running.
    static func finding(_ status: JSON?) -> Finding {
        let name = "Proxy"
        if let proxy = status?["proxy"]?.string {
            return .good(name, "The broker uses \(DisplayURL.text(proxy)).")
        }
        if UpstreamCheck.finding(status) != nil { return .good(name, "There is no proxy for all hosts.") }
        // The value is not shown, because it may contain a password.
        guard let variable = variables.first(where: { !(Environment.text($0) ?? "").isEmpty }) else {
            return .good(
                name, "No proxy is \(status == nil ? "" : "configured or ")set in the environment.")
        }
        return .doubtful(
            name, "$\(variable) is set, but the broker ignores its environment.",
            "Set proxy.url in the configuration, without user and password.")
    }
}
