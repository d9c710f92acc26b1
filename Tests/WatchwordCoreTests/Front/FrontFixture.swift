import Testing
import WatchwordProtocol

@testable import WatchwordCore

typealias FrontItem = FrontRequestReader.Item

/// Returns the items of a connection that receives `pieces`. Adjacent parts of a body are joined, because their boundaries
/// depend on the pieces.
func frontItems(_ pieces: [[UInt8]], _ limits: FrontLimits = FrontLimits()) -> [FrontItem] {
    var reader = FrontRequestReader(limits)
    var items: [FrontItem] = []
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
    return items
}

/// Returns the items of `text`, and checks that they do not depend on its division into pieces.
func frontItems(_ text: String, _ limits: FrontLimits = FrontLimits()) -> [FrontItem] {
    frontItems(bytes: Array(text.utf8), limits)
}

func frontItems(bytes: [UInt8], _ limits: FrontLimits = FrontLimits()) -> [FrontItem] {
    let whole = frontItems([bytes], limits)
    #expect(frontItems(bytes.map { [$0] }, limits) == whole, "byte by byte")
    for place in bytes.indices.dropFirst() {
        let halves = [Array(bytes[..<place]), Array(bytes[place...])]
        #expect(frontItems(halves, limits) == whole, "divided at \(place)")
    }
    return whole
}

/// Returns the first request of `text`.
func frontRequest(_ text: String, sourceLocation: SourceLocation = #_sourceLocation) throws -> FrontRequest {
    let items = frontItems(text)
    guard case .head(let request)? = items.first else {
        Issue.record("no request: \(items)", sourceLocation: sourceLocation)
        throw CancellationError()
    }
    return request
}

/// Returns the only item of `text` if it is a refusal.
func frontRefusal(_ text: String, _ limits: FrontLimits = FrontLimits()) -> FrontRefusal? {
    if case .refused(let refusal)? = frontItems(text, limits).last { refusal } else { nil }
}

/// Returns a GET request to a proxy with further fields.
func proxyGet(_ fields: String..., url: String = "http://h/x") -> String {
    "GET \(url) HTTP/1.1\r\nHost: h\r\n" + fields.map { $0 + "\r\n" }.joined() + "\r\n"
}

private let testTime = Duration.seconds(784_111_777)
let testDate = HeaderField("Date", "Sun, 06 Nov 1994 08:49:37 GMT")

extension FrontRefusal {
    func bytes(to method: String? = nil) -> [UInt8] { bytes(to: method, at: testTime) }
}

extension FrontFields {
    func response(
        status: Int, _ headers: [HeaderField], to request: FrontRequest
    ) throws(FrontRefusal) -> [HeaderField] {
        try response(status: status, HeaderBlock(headers), to: request, at: testTime)
    }
}

extension [UInt8] {
    var text: String { String(decoding: self, as: UTF8.self) }
}
