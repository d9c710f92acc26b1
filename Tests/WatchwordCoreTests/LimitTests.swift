import JSONText
import Testing
import WatchwordProtocol

@testable import WatchwordCore

/// A limit, and whether an input of a size is accepted.
struct LimitCase: Sendable, CustomTestStringConvertible {
    let testDescription: String
    let limit: Int
    let accepts: @Sendable (Int) throws -> Bool

    init(_ name: String, _ limit: Int, accepts: @escaping @Sendable (Int) throws -> Bool) {
        (self.testDescription, self.limit, self.accepts) = (name, limit, accepts)
    }
}

private func filler(_ count: Int) -> String { String(repeating: "x", count: count) }

/// Returns the replies of a connection to one line after another.
private func replies(to lines: [String], open: Bool = false) -> (text: String, calls: Int, isClosed: Bool) {
    var machine = ConnectionMachine()
    var (sent, calls, isClosed): ([UInt8], Int, Bool) = ([], 0, false)
    for line in lines {
        for event in Array("\(line)\n".utf8).withUnsafeBytes({ machine.received($0) }) {
            switch event {
            case .call(let call, _, _):
                calls += 1
                if !open { sent += machine.complete(call, .success(1)) ?? [] }
            case .send(let bytes): sent += bytes
            case .close: isClosed = true
            case .notification, .cancel, .reply: break
            }
        }
    }
    return (String(decoding: sent, as: UTF8.self), calls, isClosed)
}

private func request(_ id: Int = 1, params: String = "{}") -> String {
    #"{"jsonrpc":"2.0","method":"wait","id":\#(id),"params":\#(params)}"#
}

private func isAccepted(_ form: String, _ member: String, bytes: Int) -> Bool {
    let text = JSON.string(filler(bytes))
    let others: [(String, JSON?)] = [("type", .string(form)), ("user", "bob"), ("password", "x")].filter {
        $0.0 != member && (form == "password" || $0.0 == "type")
    }
    return (try? Credential(JSON.object(others + [(member, text)]), at: "credential")) != nil
}

private func isRead(_ text: String, _ limits: FrontLimits) -> Bool {
    if case .refused? = frontItems([Array(text.utf8)], limits).last { false } else { true }
}

private let chunked = "PUT / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n"

private let cases = [
    LimitCase("bytes of a URL", Limits.urlBytes) { (try? FetchURL("http://h/\(filler($0 - 9))")) != nil },
    LimitCase("header fields of a fetch", Limits.requestHeaderFields) {
        (try? HeaderPolicy.checked(Array(repeating: HeaderField("X", "y"), count: $0))) != nil
    },
    LimitCase("bytes of header fields", Limits.requestHeaderBytes) {
        (try? HeaderPolicy.checked([HeaderField("X", filler($0 - 1))])) != nil
    },
    LimitCase("challenges of a response", Limits.challengesPerResponse) {
        ChallengeHeader.parse(fields: Array(repeating: "Basic realm=\"x\"", count: $0)).count == $0
    },
    LimitCase("bytes of challenges", Limits.challengeHeaderBytes) {
        ChallengeHeader.parse(fields: ["Basic realm=\"\(filler($0 - 14))\""]).count == 1
    },
    LimitCase("redirects", 2) { count in
        var run = try MachineRun("http://h/0") { $0.maxRedirects = 2 }
        run.start()
        for number in 1...count { run.respond(302, ("Location", "/\(number)")) }
        return run.failure != .tooManyRedirects
    },
    LimitCase("bytes of a user", Limits.credentialBytes) { isAccepted("password", "user", bytes: $0) },
    LimitCase("bytes of a password", Limits.credentialBytes) { isAccepted("password", "password", bytes: $0) },
    LimitCase("bytes of a token", Limits.tokenBytes) { isAccepted("token", "token", bytes: $0) },
    LimitCase("requests in flight", Limits.requestsInFlight) { count in
        replies(to: (0..<count).map { request($0) }, open: true).calls == count
    },
    LimitCase("entries of a batch", Limits.batchEntries) { count in
        replies(to: ["[" + (0..<count).map { request($0) }.joined(separator: ",") + "]"]).calls == count
    },
    LimitCase("consecutive invalid messages", Limits.invalidMessages) {
        !replies(to: Array(repeating: "{", count: $0)).isClosed
    },
    LimitCase("bytes of a message", Limits.messageBytes) {
        let frame = request(params: #"{"a":""}"#).utf8.count
        return replies(to: [request(params: #"{"a":"\#(filler($0 - frame))"}"#)]).calls == 1
    },
    LimitCase("depth of a message", Limits.messageDepth) {
        let (start, end) = (String(repeating: "[", count: $0 - 1), String(repeating: "]", count: $0 - 1))
        return replies(to: [request(params: start + end)]).calls == 1
    },
    // A message has five more values.
    LimitCase("values of a message", Limits.messageValues) {
        replies(to: [request(params: "[0" + String(repeating: ",0", count: $0 - 6) + "]")]).calls == 1
    },
    LimitCase("accepted logins", 3) { count in
        var cache = SessionCache(limits: SessionLimits(entries: 3))
        for number in 1...count {
            let host = ExactText("h\(number)")
            let space = ProtectionSpace(
                scheme: "http", host: host, port: 80, realm: "r", authenticationMethod: .httpBasic)
            cache.remember(
                LoginCredential(user: "bob", password: secret("one")), for: space, at: try FetchURL("http://\(host)/"),
                digest: nil, now: .seconds(number))
        }
        return cache.count == count
    },
    LimitCase("trusted certificates", Limits.rememberedDecisions) { count in
        var decisions = TrustAndCertificateCache()
        let keys = try (1...count).map { TrustedKey(origin: try FetchURL("https://h:\($0)/").origin, spkiSha256: []) }
        for key in keys { decisions.trust(key, isPermanent: false, owner: nil, now: .zero) }
        return decisions.trustedKey(at: keys[0].origin, owner: nil) != nil
    },
    LimitCase("programs whose questions are stopped", Limits.stoppedPrograms) { count in
        var stopped = StoppedPrograms()
        for number in 1...count { _ = stopped.stop(ExactText("exe:/\(number)"), now: .zero) }
        return stopped.contains("exe:/1")
    },
    LimitCase("bytes of a front's head", 24) {
        isRead("GET / HTTP/1.0\r\nA:\(filler($0 - 22))\r\n\r\n", FrontLimits(headBytes: 24))
    },
    LimitCase("fields of a front's head", 2) {
        isRead("GET / HTTP/1.0\r\n" + String(repeating: "A: b\r\n", count: $0) + "\r\n", FrontLimits(fields: 2))
    },
    LimitCase("bytes of a front's trailers", 64) {
        isRead("\(chunked)0\r\nA:\(filler($0 - 6))\r\n\r\n", FrontLimits(headBytes: 64))
    },
    LimitCase("fields of a front's trailers", 2) {
        isRead("\(chunked)0\r\n" + String(repeating: "A: b\r\n", count: $0) + "\r\n", FrontLimits(fields: 2))
    },
    LimitCase("bytes of chunk extensions", 8) {
        isRead("\(chunked)1;\(filler($0 - 4))\r\nx\r\n1;xx\r\ny\r\n0\r\n\r\n", FrontLimits(chunkExtensionBytes: 8))
    },
    LimitCase("empty lines before a request", 2) {
        isRead(String(repeating: "\r\n", count: $0) + "GET / HTTP/1.0\r\n\r\n", FrontLimits(emptyLines: 2))
    },
]

struct LimitTests {
    @Test(arguments: cases)
    func aLimitIsReachedAndNotPassed(of one: LimitCase) throws {
        #expect(try one.accepts(one.limit))
        #expect(try !one.accepts(one.limit + 1))
    }
}
