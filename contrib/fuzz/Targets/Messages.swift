import JSONText
import WatchwordCore
import WatchwordProtocol

/// Checks that bytes in pieces of any size give the same events as all at once, that each call gets one reply with its own id and
/// each request is settled at most once, that all output is JSON-RPC, and that no parameter error quotes a secret.
func checkMessages(_ bytes: [UInt8]) throws {
    guard let seed = bytes.first else { return }
    let stream = Array(bytes[1...])
    let whole = try Conversation(of: [stream])
    let odd = try Conversation(of: stream.pieces(seed: seed))
    try hold(whole.events == odd.events, "in one piece \(whole.events), in several \(odd.events)")
    try hold(whole.sent == odd.sent, "the output differs between one piece and several")
    for case .call(_, _, let params?) in whole.events { try checkParameters(params) }
    for case .notification(_, let params?) in whole.events { try checkParameters(params) }
}

private struct Conversation {
    var events: [ConnectionMachine.Event] = []
    var sent: [UInt8] = []

    init(of pieces: [[UInt8]]) throws {
        var machine = ConnectionMachine(maxMessageBytes: 4096)
        let requests = [machine.request(method: "a", params: [:]), machine.request(method: "b", params: [:])]
        for piece in pieces { events += piece.withUnsafeBytes { machine.received($0) } }
        if let close = events.firstIndex(of: .close) {
            try hold(close == events.count - 1, "events after the connection is closed: \(events)")
        }
        var settled: Set<Int> = []
        for case .reply(let request, _) in events {
            try hold(settled.insert(request).inserted, "request \(request) is settled twice")
            try hold(requests.contains { $0.number == request }, "there is no request \(request)")
        }
        for case .send(let bytes) in events { try append(bytes, id: nil) }
        for case .call(let call, _, _) in events {
            let id = machine.requestID(of: call)
            let reply = machine.complete(call, .success(["a": 1]))
            if let reply { try append(reply, id: id) }
            try hold(machine.complete(call, .success([:])) == nil, "a call is answered twice")
        }
        try hold(machine.openCallCount == 0, "calls remain open")
    }

    /// Appends a frame of either kind that contains a reply or a batch of replies.
    private mutating func append(_ bytes: [UInt8], id: RequestID?) throws {
        sent += bytes
        guard let start = bytes.firstIndex(where: { $0 == UInt8(ascii: "{") || $0 == UInt8(ascii: "[") }),
            let json = try? JSON.parse(Array(bytes[start...]), limits: JSONLimits(depth: 80, values: 100_000))
        else { throw Broken(description: "the output is not JSON: \(String(decoding: bytes, as: UTF8.self))") }
        for reply in json.elements ?? [json] {
            let isReply = (reply["result"] == nil) != (reply["error"] == nil) && reply["id"] != nil
            try hold(reply["jsonrpc"]?.string == "2.0" && isReply, "the output is not a reply")
        }
        if let id, json.kind == .object {
            try hold(json["id"].flatMap(RequestID.init) == id, "a reply has the id of another request")
        }
    }
}

private let secretNames = ["password", "token", "passphrase", "privateKey"]

private func checkParameters(_ params: JSON) throws {
    var strings = Strings()
    strings.collect(params, as: nil)
    let details = problems(params)
    for secret in strings.secrets
    where secret.utf8.count >= 8 && !strings.others.contains(where: { $0.contains(secret) }) {
        try hold(!details.contains { $0.contains(secret) }, "an error quotes a secret: \(details)")
    }
}

/// The secret and other strings of a message.
private struct Strings {
    var secrets: [String] = []
    var others: [String] = []

    mutating func collect(_ json: JSON, as name: String?) {
        if let string = json.string {
            if let name, secretNames.contains(name) { secrets.append(string) } else { others.append(string) }
        }
        for element in json.elements ?? [] { collect(element, as: nil) }
        for (name, value) in json.members ?? [] {
            others.append(name)
            collect(value, as: name)
        }
    }
}

/// Returns the problems that all parameter parsers find.
private func problems(_ params: JSON) -> [String] {
    let readers: [() throws -> Any] = [
        { try FetchRunParams(params) }, { try Initialize(params) }, { try AuthRespond(params) },
        { try CancelRequestParams(params) }, { try ChallengeAnswer(params) },
        { try Credential(params, at: "params.credential") }, { try SpacePattern(params) },
        { try ProtectionSpace(params) },
    ]
    return readers.compactMap { reader in
        do {
            let read = try reader()
            return (read as? AuthRespond)?.problem
        } catch {
            return (error as? InvalidParams)?.detail ?? "\(error)"
        }
    }
}
