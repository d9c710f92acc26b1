import WatchwordProtocol

/// One URL of the command, with the options that apply to it.
struct FetchItem {
    /// The offset at which `-C` resumes.
    enum Resume: Equatable {
        case atByte(Int)
        /// `-C -`: the end of the partial file.
        case endOfPartial
    }

    /// The parameters of the fetch, without the body.
    var params: FetchRunParams
    var content: RequestContent?
    /// The output file; `nil` for standard output.
    var file: String?
    var resume: Resume?
    var createsFolders = false
    /// `--remove-on-error`: an interrupt leaves no partial file.
    var removesOnError = false
    /// The index of the URL argument from which this URL was expanded.
    var number = 0
    /// `-L --max-redirs 0`: a redirect is a failure.
    var refusesRedirects = false
    /// `-R`
    var setsTime = false
    /// `-i` and `-I`.
    var showsHeader = false
    var failsOnErrors = false
    /// `--fail-with-body`.
    var savesErrorBodies = false
    /// `-D`
    var headerFile: HeaderFile?
    var writeOut: WriteOut?
    var printsJSON = false
    var retry = RetryPolicy()
    /// The name in progress bars.
    var name: String
}
