extension Settings {
    /// Returns the changed options that take effect only when the broker is restarted.
    ///
    /// - Parameter started: the settings with which the broker was started.
    public func optionsThatNeedRestart(since started: Settings) -> [String] {
        var options: [String] = []
        if tokenModule != started.tokenModule { options.append("tokens.module") }
        if filtersSystemCalls != started.filtersSystemCalls { options.append("process.filter-system-calls") }
        if frontProxy != started.frontProxy { options.append("front.proxy") }
        if frontHosts != started.frontHosts { options.append("front.hosts") }
        if frontTunnelPorts != started.frontTunnelPorts { options.append("front.tunnel-ports") }
        if frontSites != started.frontSites { options.append("front.site") }
        return options
    }
}
