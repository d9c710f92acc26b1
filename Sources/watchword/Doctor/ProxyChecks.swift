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

/// Checks the choice of upstream proxies: whether the PAC file or the settings of the desktop can be used, and whether all
/// proxies could be reached when they were last used.
enum UpstreamCheck {
    /// - Parameter status: The status of the broker.
    /// - Returns: `nil` if only one proxy is configured, or none.
    static func finding(_ status: JSON?) -> Finding? {
        let name = "Upstream proxies"
        guard let upstreams = status?["upstreams"] else { return nil }
        let rules = upstreams["rules"]?.integer ?? 0
        let script = upstreams["pac"]?.string.map { "the PAC file \(DisplayURL.text($0))" }
        let source = script ?? (upstreams["desktop"]?.boolean == true ? "the settings of the desktop" : nil)
        if let problem = upstreams["problem"]?.string {
            let rest =
                status?["proxy"]?.string == nil
                ? "cannot be reached. To use a proxy for them, set proxy.url." : "use the proxy above."
            return .bad(
                name, "\(problem.shortened(to: 300)).",
                "Correct \(source ?? "the file"). Until then, hosts without a rule \(rest)")
        }
        let failed = (upstreams["unreachable"]?.elements ?? []).compactMap { $0.string.map { DisplayURL.text($0) } }
        guard failed.isEmpty else {
            return .doubtful(
                name, "\(failed.joined(separator: ", ")) could not be reached lately.",
                "Check that it runs. Meanwhile the other proxies in the list of \"use\" or of the PAC file are used.")
        }
        if let url = upstreams["pac"]?.string, ScriptURL.isForgeable(url) {
            return .doubtful(
                name,
                "\(DisplayURL.text(url)) is fetched by http, so others on the network path can choose the proxies.",
                "Use an https or file URL in proxy.pac. Until then, these proxies get no stored logins to http servers."
            )
        }
        guard rules > 0 || source != nil else { return nil }
        let parts = [rules > 0 ? counted(Int(rules), "rule") : nil, source].compactMap(\.self)
        return .good(name, "The broker uses \(parts.joined(separator: " and ")).")
    }
}

/// Checks whether the fronts of the configuration listen, and whether a proxy has an upstream proxy to log in to.
enum FrontCheck {
    /// - Parameters:
    ///   - fronts: the result of `front/list`.
    ///   - status: the status of the broker.
    /// - Returns: `nil` if there is no front.
    static func finding(_ fronts: JSON, _ status: JSON) -> Finding? {
        let name = "Fronts"
        let all = fronts["fronts"]?.elements ?? []
        if let problem = all.lazy.compactMap({ $0["problem"]?.string }).first {
            return .bad(
                name, "\(problem.shortened(to: 300)).",
                "Change \"listen\" or \"proxy\" in [front] of the configuration, and restart the broker.")
        }
        guard !all.isEmpty else { return nil }
        let hasUpstream = status["proxy"]?.string != nil || UpstreamCheck.finding(status) != nil
        let upstream = hasUpstream ? "through the proxies above" : "without an upstream proxy"
        return .good(name, "\(counted(all.count, "front")), \(upstream); see \"watchword front status\".")
    }
}
