internal import WatchwordCore

/// The failures that do not concern one server.
extension TransferFailure {
    static let cancelled = TransferFailure(.cancelled, "the transfer was cancelled")
    static let shutDown = TransferFailure(.cancelled, "the transfer engine is shut down")
    static let timedOut = TransferFailure(
        .timedOut, "timed out waiting for the file, token or ticket of the login")

    // The body of a response.
    static let noBody = TransferFailure(
        .internalError, "no such body: it was read to its end, or not read for too long")
    static let bodyTaken = TransferFailure(.internalError, "the body is already being read, or was read")
    static let bodyUnreadable = TransferFailure(.internalError, "cannot read the stored copy of the body")
    static let readerGone = TransferFailure(.cancelled, "the body's reader closed its connection")
    static let readerWrites = TransferFailure(.cancelled, "unexpected data from body reader")
    static let readerIdle = TransferFailure(
        .timedOut, "the body was not read for \(EngineLimits.readerIdleSeconds) seconds")

    // A request's body that the client sends through a socket.
    static let noMoreBody = TransferFailure(
        .requestBodyIncomplete,
        "no data for the request's body for \(EngineLimits.readerIdleSeconds) seconds")
}
