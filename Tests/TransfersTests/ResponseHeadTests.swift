import Testing
import WatchwordCore
import WatchwordProtocol

@testable import Transfers

@Suite struct ResponseHeadTests {
    private func head(
        _ lines: String..., url: String = "http://a.example/", through proxy: ProxyRequest? = nil,
        delivery: BodyDelivery = .fromHeader
    ) -> (head: ResponseHead, request: SharedRequest) {
        var request = request(url)
        request.proxy = proxy
        request.options.delivery = delivery
        let shared = SharedRequest(request)
        var head = ResponseHead(shared)
        for line in lines { add(line, to: &head) }
        return (head, shared)
    }

    private func add(_ line: String, to head: inout ResponseHead) {
        let appended = Array("\(line)\r\n".utf8).withUnsafeBytes { head.append($0) }
        #expect(appended == .field || appended == .edge)
    }

    @Test(arguments: [(200, true), (103, false), (302, false), (401, false), (407, false), (417, true), (500, true)])
    func onlySomeResponsesAreFinal(status: Int, isFinal: Bool) {
        let (head, request) = head("HTTP/1.1 \(status) Text", "")
        #expect(head.isFinal(for: request) == isFinal)
    }

    @Test func aHeaderSectionIsFinalOnlyWhenItIsComplete() {
        let (head, request) = head("HTTP/1.1 200 OK")
        #expect(!head.isFinal(for: request))
    }

    @Test func aWholeResponseIsNeverStreamed() {
        let (head, request) = head("HTTP/1.1 200 OK", "", delivery: .whole)
        #expect(!head.isFinal(for: request))
    }

    /// The response to CONNECT is not that to the request.
    @Test func aTunnelBeginsAnotherHead() {
        let proxy = ProxyRequest(kind: .http, host: "proxy.example", port: 3128)
        var (head, request) = head("HTTP/1.1 200 Connected", "", url: "https://a.example/", through: proxy)
        #expect(!head.isFinal(for: request))
        head.beginOrigin()
        #expect(head.headers.status == 0)
        add("HTTP/1.1 200 OK", to: &head)
        add("", to: &head)
        #expect(head.isFinal(for: request))
        let passes = (0...EngineLimits.refusedTunnelBodyBytes).allSatisfy { _ in head.passesRefusalByte() }
        #expect(passes)
    }

    @Test func theBodyOfARefusedTunnelIsBounded() {
        let proxy = ProxyRequest(kind: .http, host: "proxy.example", port: 3128)
        var (head, _) = head("HTTP/1.1 407 No", "", url: "https://a.example/", through: proxy)
        let passes = (0..<EngineLimits.refusedTunnelBodyBytes).allSatisfy { _ in head.passesRefusalByte() }
        #expect(passes)
        let passesMore = head.passesRefusalByte()
        #expect(!passesMore)
    }

    @Test(arguments: [("GET", 200, true), ("HEAD", 200, false), ("GET", 204, false), ("GET", 304, false)])
    func someResponsesHaveNoBody(method: String, status: Int, hasBody: Bool) {
        #expect(head("HTTP/1.1 \(status) Text", "").head.hasBody(for: method) == hasBody)
    }

    @Test func anUnrequestedSwitchIsReported() {
        #expect(head("HTTP/1.1 101 Switching", "").head.isUnrequestedSwitch)
        #expect(!head("HTTP/1.1 100 Continue", "").head.isUnrequestedSwitch)
    }

    @Test(arguments: [
        (101, true, false), (100, false, false), (200, true, true), (401, false, true), (426, true, true),
    ])
    func aRequestedSwitchIsTheResponse(status: Int, isFinal: Bool, hasNotSwitched: Bool) {
        var request = request("http://a.example/")
        (request.options.delivery, request.options.switchesProtocol) = (.fromHeader, true)
        let shared = SharedRequest(request)
        var head = ResponseHead(shared)
        for line in ["HTTP/1.1 \(status) Text", ""] { add(line, to: &head) }
        #expect(!head.isUnrequestedSwitch && head.isFinal(for: shared) == isFinal)
        #expect(head.hasNotSwitched == hasNotSwitched && head.isRefusal == hasNotSwitched)
    }
}
