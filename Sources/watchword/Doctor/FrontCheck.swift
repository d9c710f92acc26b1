import JSONText
import WatchwordProtocol

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
