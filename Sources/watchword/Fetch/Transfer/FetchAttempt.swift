import ArgumentParser
import JSONText
import WatchwordClient
import WatchwordProtocol

/// One fetch by the broker: its response, the connections for its bodies, and its result.
final class FetchAttempt {
    /// The maximum size of a body inside the request, in bytes. Larger bodies, and bodies of unknown size, are sent on a separate
    /// connection.
    private static let inlineBytes = 1 << 20

    let fetchID: String
    private let token: String
    private let item: FetchItem
    private let connection: BrokerConnection
    private(set) var response: AttemptResponse
    private(set) var log = ExchangeLog()
    private var download: Download?
    private var upload: Upload?
    /// The result without the body, or the error.
    private(set) var completion: Result<JSON, RPCError>?

    /// Opens the output and starts the fetch. `attach` then connects the bodies.
    init(_ item: FetchItem, on connection: BrokerConnection) throws {
        (self.item, self.connection) = (item, connection)
        response = try AttemptResponse(item)
        do {
            let reply = try connection.call(FetchStart(try Self.params(item, response.requestHeaders)))
            guard let id = reply["fetchId"]?.string, let token = reply["attachToken"]?.string else {
                throw ClientFailure.protocolViolation("fetch/start returned no fetchId or attachToken")
            }
            (fetchID, self.token) = (id, token)
        } catch {
            _ = response.discard()
            throw error
        }
    }

    private static func params(_ item: FetchItem, _ headers: [HeaderField]) throws -> FetchRunParams {
        var params = item.params
        params.headers += headers
        guard let content = item.content else { return params }
        if isAttached(content) {
            params.attachedBody = AttachedBody(sizeBytes: content.sizeBytes)
        } else {
            params.body = try content.bytes()
        }
        return params
    }

    private static func isAttached(_ content: RequestContent) -> Bool {
        content.sizeBytes.map { $0 > inlineBytes } ?? true
    }

    /// Opens the separate connections for the bodies.
    func attach() throws(ClientFailure) {
        do throws(ClientFailure) {
            if item.content.map(Self.isAttached) ?? false { try attachRequest() }
            download = Download(from: try connection.attach(token: token, side: .response))
        } catch {
            // The fetch may have failed already. `completion` then contains the reason.
            guard case .refused(let error) = error, error.kind == .unknownFetch else { throw error }
        }
    }

    /// Sends the body from its start, also when the broker requests it again.
    func attachRequest() throws(ClientFailure) {
        guard let content = item.content else { return }
        upload = Upload(content, to: try connection.attach(token: token, side: .request))
    }

    /// The descriptors to watch. The body of the response is not read before its header, which determines the destination.
    var watches: [Watch] {
        [upload?.watch, response.head == nil ? nil : download?.watch].compactMap(\.self)
    }

    /// Records a request or response. Writes the header of a redirect once it is followed.
    func exchanged(_ method: String, _ params: JSON) throws {
        guard let head = log.record(method, params) else { return }
        try item.headerFile?.add(head.bytes)
        if item.showsHeader && !item.printsJSON { try response.output.write(head.bytes) }
    }

    /// Processes the header of the final response.
    /// - Parameter isWanted: whether the command writes the body of such a response.
    func receive(_ head: ReportedHead, isWanted: Bool) throws {
        let isWritten = response.receive(head) && isWanted
        // The header of a refused response is written too, so that the user can find the reason.
        let isRefused = item.failsOnErrors && head.status >= 400 || item.refusesRedirects && head.isRedirect
        if isWanted || isRefused { try item.headerFile?.add(head.bytes) }
        guard isWritten else { return }
        try response.startBody()
        if item.showsHeader && !item.printsJSON { try response.output.write(head.bytes) }
        download?.output = response.output
    }

    func complete(_ params: JSON) {
        guard let error = params["error"] else {
            completion = .success(params)
            return
        }
        // Receive the remaining bytes, because -C stores an incomplete body.
        if response.head != nil { download?.work() }
        completion = .failure(
            RPCError(error) ?? RPCError(.internalError, "the broker reported an error without a reason; see its log"))
    }

    func cancel() { _ = try? connection.call(FetchCancel(fetchID: fetchID)) }

    // MARK: Progress

    var problem: (any Error)? { upload?.problem ?? download?.problem }
    var receivedBytes: Int { download?.receivedBytes ?? 0 }
    /// The number of bytes sent; `nil` if no body is being sent.
    var sentBytes: Int? { response.head == nil && upload != nil ? upload?.sentBytes : nil }

    /// Whether the attempt is over: it has failed, or it has succeeded and its body has been received.
    var isOver: Bool {
        switch completion {
        case nil: problem != nil
        case .failure: true
        case .success: problem != nil || download?.isAtEnd ?? true
        }
    }

    var reachesEnd: Bool { response.reachesEnd(after: receivedBytes) }

    /// Whether all bytes that the broker sent have been received.
    func isWhole(_ result: JSON) -> Bool { result["bodyBytes"]?.integer.map { $0 == receivedBytes } ?? true }
}
