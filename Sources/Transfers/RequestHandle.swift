internal import CCurl
internal import WatchwordCore
internal import WatchwordProtocol

/// An easy handle with the options of one request, and the memory that libcurl uses for it.
struct RequestHandle {
    let easy: EasyHandle
    private var lines: HeaderLines
    private var proxyLines = HeaderLines()
    private let errorBuffer: UnsafeMutablePointer<CChar>

    /// - Parameter template: see `EasyHandle.template`.
    init(
        _ request: SharedRequest, _ prepared: Prepared, from template: EasyHandle
    ) throws(TransferFailure) {
        let hasBody = request.sendsBody
        var lines = try HeaderLines(request, hasBody: hasBody, login: prepared.login?.authorization)
        do throws(TransferFailure) { easy = try template.duplicate() } catch {
            lines.free()
            throw error
        }
        self.lines = lines
        errorBuffer = .allocate(capacity: Int(CURL_ERROR_SIZE))
        errorBuffer.initialize(repeating: 0, count: Int(CURL_ERROR_SIZE))
        do throws(TransferFailure) {
            try easy.apply(request, hasBody: hasBody)
            try easy.set(CURLOPT_HTTPHEADER, lines)
            proxyLines = try HeaderLines(request.proxy, login: prepared.proxyLogin?.authorization)
            try easy.set(CURLOPT_PROXYHEADER, proxyLines)
            try easy.set(CURLOPT_ERRORBUFFER, pointer: errorBuffer)
        } catch {
            close()
            throw error
        }
    }

    /// Makes libcurl send the body without asking the server before.
    mutating func dropExpectation() throws(TransferFailure) {
        try lines.dropExpectation()
        try easy.set(CURLOPT_HTTPHEADER, lines)
    }

    /// libcurl's description of the failure; empty if it gave none.
    var errorText: String { String(cString: errorBuffer) }

    /// Frees the handle and its memory. The handle must have been removed from its multi handle.
    mutating func close() {
        easy.close()
        lines.free()
        proxyLines.free()
        errorBuffer.deallocate()
    }
}
