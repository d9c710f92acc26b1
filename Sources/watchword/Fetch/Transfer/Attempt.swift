import ArgumentParser
import JSONText
import WatchwordClient
import WatchwordProtocol

/// One fetch at the broker: its response on the way, its body on the way, and how it has ended.
final class Attempt {
    /// Larger bodies, and those of unknown length, are sent through a connection of their own.
    private static let inlineBytes = 1 << 20

    let fetchID: String
    private let token: String
    private let sendsBody: Bool
    private let item: FetchItem
    private let connection: BrokerConnection
    let output: ResponseOutput?
    let part: PartialFile?
    let resumption: Resumption?
    private var download: Download?
    private var upload: Upload?
    private(set) var head: ResponseHead?
    private(set) var log = ExchangeLog()
    private(set) var verdict = Resumption.Verdict.write(from: 0)
    /// The end: the result without the body, or the error.
    private(set) var completion: Result<JSON, RPCError>?

    /// Opens where the response goes, then asks for it.
    init(_ item: FetchItem, on connection: BrokerConnection) throws {
        self.item = item
        self.connection = connection
        part =
            try item.resume == nil
            ? nil : item.file.flatMap { try PartialFile(for: $0, createsFolders: item.createsFolders) }
        resumption = try item.resume.map { [part] in try Resumption($0, part: part) }
        if item.printsJSON && item.file == nil {
            output = .inMemory()
        } else if let part {
            output = ResponseOutput(part)
        } else {
            output =
                try item.file.map { try ResponseOutput(file: $0, createsFolders: item.createsFolders) }
                ?? .standardOutput()
        }
        do {
            let (reply, sendsBody) = try Self.start(item, resumption, on: connection)
            self.sendsBody = sendsBody
            guard let id = reply["fetchId"]?.string, let token = reply["attachToken"]?.string else {
                throw ClientFailure.protocolViolation("a fetch without a name")
            }
            (fetchID, self.token) = (id, token)
        } catch {
            if let part { _ = part.leave() } else { output?.discard() }
            throw error
        }
    }

    private static func start(
        _ item: FetchItem, _ resumption: Resumption?, on connection: BrokerConnection
    ) throws -> (JSON, sendsBody: Bool) {
        let params = try params(item, resumption)
        let isAttached = item.content.map { ($0.sizeBytes ?? .max) > inlineBytes } ?? false
        return (try connection.call(.fetchStart, params), isAttached)
    }

    private static func params(_ item: FetchItem, _ resumption: Resumption?) throws -> JSON {
        var params = item.params
        params.headers += resumption?.headers ?? []
        guard let content = item.content else { return params.json }
        if let size = content.sizeBytes, size <= inlineBytes {
            params.body = try content.bytes()
            return params.json
        }
        return params.json.adding(["body": Self.attachedBody(content)])
    }

    static func attachedBody(_ content: RequestContent) -> JSON {
        ["type": "attach", "sizeBytes": content.sizeBytes.map { .integer($0) }]
    }

    /// Opens the connections for the bodies.
    func attach() throws(ClientFailure) {
        do throws(ClientFailure) {
            if sendsBody { try attachRequest() }
            download = Download(from: try connection.attach(token: token, side: .response))
        } catch {
            // The fetch may have failed by now: then its completion says why.
            guard case .refused(let error) = error, error.kind == .unknownFetch else { throw error }
        }
    }

    /// From the start, also when the broker asks a second time.
    func attachRequest() throws(ClientFailure) {
        guard let content = item.content else { return }
        upload = Upload(content, to: try connection.attach(token: token, side: .request))
    }

    /// The body is not touched before the header has said what to do with it.
    var watches: [Watch] { [upload?.watch, head == nil ? nil : download?.watch].compactMap(\.self) }

    /// A redirect that is followed is shown as it comes.
    func exchanged(_ method: String, _ params: JSON) throws {
        guard let head = log.note(method, params) else { return }
        try item.headerFile?.add(head.bytes)
        if item.showsHeader && !item.printsJSON { try output?.write(head.bytes) }
    }

    func headerCame(_ params: JSON, isWanted: (ResponseHead) -> Bool) throws {
        let head = ResponseHead(params)
        self.head = head
        verdict = resumption?.verdict(head) ?? .write(from: 0)
        let isWanted = isWanted(head)
        // Also of what is thrown away: that is how one finds out why.
        let isRefused = item.failsOnErrors && head.status >= 400 || item.refusesRedirects && head.isRedirect
        if isWanted || isRefused { try item.headerFile?.add(head.bytes) }
        guard case .write(let offset) = verdict, isWanted, let output else { return }
        if let part {
            try part.start(at: offset)
            if offset == 0 { part.keep(head.status == 200 ? head.strongValidator : nil) }
        }
        if item.showsHeader && !item.printsJSON { try output.write(head.bytes) }
        download?.output = output
    }

    func completed(_ params: JSON) {
        guard let error = params["error"] else {
            completion = .success(params)
            return
        }
        // What came before the failure is for the part that -C keeps.
        if head != nil { download?.work() }
        completion = .failure(RPCError(error) ?? RPCError(.internalError, "The broker does not say what went wrong."))
    }

    var problem: (any Error)? { upload?.problem ?? download?.problem }
    var receivedBytes: Int { download?.receivedBytes ?? 0 }
    /// `nil` when nothing is being sent.
    var sentBytes: Int? { head == nil && upload != nil ? upload?.sentBytes : nil }

    /// Nothing more is to come.
    var isOver: Bool {
        switch completion {
        case nil: problem != nil
        case .failure: true
        case .success: problem != nil || download?.isAtEnd ?? true
        }
    }

    /// Whether a range goes to the end: a server may send less of it than it was asked for (RFC 9110 section 15.3.7).
    var reachesEnd: Bool {
        guard case .write(let offset) = verdict, head?.status == 206, let total = head?.contentRange?.total else {
            return true
        }
        return offset + receivedBytes == total
    }

    /// Whether all bytes have come that the broker has sent.
    func isWhole(_ result: JSON) -> Bool { result["bodyBytes"]?.integer.map { $0 == receivedBytes } ?? true }
}
