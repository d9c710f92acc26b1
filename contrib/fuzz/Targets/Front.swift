import WatchwordProtocol

@testable import WatchwordCore

/// Checks that the requests of a connection do not depend on its division into pieces, that no request with two lengths is passed on,
/// and that nothing follows a refusal.
func checkFront(_ bytes: [UInt8]) throws {
    guard let seed = bytes.first else { return }
    let limits = FrontLimits(headBytes: 1024, fields: 16, emptyLines: 3, chunkExtensionBytes: 32, partBytes: 64)
    let whole = FrontRecording([bytes], limits)
    let odd = FrontRecording(bytes.pieces(seed: seed), limits)
    try hold(whole == odd, "in one piece \(whole), in several \(odd)")
    try hold(whole.bodyBytes <= bytes.count, "more bytes than received: \(whole)")
    try hold(!whole.items.dropLast().contains { $0.isRefusal }, "an item follows a refusal: \(whole)")
    for case .head(let request) in whole.items { try checkRequest(request) }
}

private func checkRequest(_ request: FrontRequest) throws {
    let lengths = request.headers.values(of: "Content-Length").count
    let codings = request.headers.values(of: "Transfer-Encoding").count
    try hold(lengths + codings <= 1, "two lengths: \(request)")
    try hold(request.headers.values(of: "Host").count <= 1, "two hosts: \(request)")
    try hold((request.body == .chunked) == (codings == 1), "chunked without a coding: \(request)")
    try hold(
        !request.headers.contains { $0.isNamed("Authorization") || $0.isNamed("Proxy-Authorization") },
        "a credential in \(request)")
    try hold(
        request.headers.allSatisfy { !$0.value.utf8.contains { $0 < 0x20 && $0 != 0x09 || $0 == 0x7F } },
        "a control character in \(request)")
    if case .absolute(let url) = request.target {
        try hold(url.origin.scheme == .http && !url.origin.text.contains("@"), "\(url.text) is invalid")
    }
    let sent = FrontResponse(status: 200, headers: request.headers, length: nil, to: request).bytes
    let lines = String(decoding: sent, as: UTF8.self).split(separator: "\r\n", omittingEmptySubsequences: false)
    try hold(lines.count <= request.headers.count + 5, "a value breaks a line: \(request)")
}

/// The items of a connection; adjacent parts of a body are joined.
private struct FrontRecording: Equatable {
    var items: [FrontRequestReader.Item] = []
    var rest: [UInt8] = []

    init(_ pieces: [[UInt8]], _ limits: FrontLimits) {
        var reader = FrontRequestReader(limits)
        for piece in pieces {
            piece.withUnsafeBytes { reader.append($0) }
            while let item = reader.next() {
                if case .body(let part) = item, case .body(let previous)? = items.last {
                    items[items.count - 1] = .body(previous + part)
                } else {
                    items.append(item)
                }
            }
        }
        rest = reader.takeRest()
    }

    var bodyBytes: Int {
        items.reduce(0) { count, item in if case .body(let part) = item { count + part.count } else { count } }
    }
}

extension FrontRequestReader.Item {
    fileprivate var isRefusal: Bool { if case .refused = self { true } else { false } }
}
