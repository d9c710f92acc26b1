extension Settings {
    /// The options whose new values take effect only when the broker starts again.
    ///
    /// - Parameter started: the settings that the broker was started with.
    public func optionsThatNeedRestart(since started: Settings) -> [String] {
        var options: [String] = []
        if tokenModule != started.tokenModule { options.append("tokens.module") }
        if filtersSystemCalls != started.filtersSystemCalls { options.append("process.filter-system-calls") }
        return options
    }
}
