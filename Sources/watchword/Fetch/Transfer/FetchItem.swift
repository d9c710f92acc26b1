import WatchwordProtocol

/// One URL of the command, and all that the options say about it.
struct FetchItem {
    /// Where to go on.
    enum Resume: Equatable {
        case atByte(Int)
        /// `-C -`: after what is in the partial file.
        case whereItEnded
    }

    /// Without the body.
    var params: FetchRunParams
    var content: RequestContent?
    /// `nil` for standard output.
    var file: String?
    var resume: Resume?
    var createsFolders = false
    /// Which URL argument of the command it comes from, from 0 on.
    var number = 0
    /// `-L --max-redirs 0`: a redirect is a failure.
    var refusesRedirects = false
    /// `-R`
    var setsTime = false
    /// `-i` and `-I`.
    var showsHeader = false
    var failsOnErrors = false
    /// `--fail-with-body`.
    var keepsErrorBodies = false
    /// `-D`
    var headerFile: HeaderFile?
    var writeOut: WriteOut?
    var printsJSON = false
    var retry = RetryPolicy()
    /// What bars call it.
    var name: String
}
