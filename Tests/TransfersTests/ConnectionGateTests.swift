import Foundation
import TestServers
import Testing
import WatchwordCore
import WatchwordProtocol

@testable import Transfers

/// No connection is made to an address that the configuration denies, whichever name or proxy leads there.
@Suite(.timed) struct ConnectionGateTests {
    private func denying(_ patterns: String..., then make: () -> TransferRequest) throws -> TransferRequest {
        var request = make()
        request.deniedAddresses = AddressRules(denied: try patterns.map { try HostPattern($0) })
        return request
    }

    @Test(arguments: ["127.0.0.1", "localhost", "x.localhost", "0.0.0.0", "[::]", "[::1]", "[::ffff:127.0.0.1]"])
    func noNameLeadsToADeniedAddress(host: String) async throws {
        let server = ScriptedServer([okay])
        defer { server.stop() }
        let request = try denying("127.0.0.1") { TransfersTests.request("http://\(host):\(server.port)/") }
        try await withEngine { engine in
            let failure = await engine.exchange(request).failure
            #expect(failure?.cause == .addressDenied, "\(String(describing: failure))")
            #expect(failure?.detail.contains("fetch.deny") == true)
        }
        #expect(server.heard.isEmpty)
    }

    @Test(arguments: [ProxyRequest.Kind.http, .https, .socks5h])
    func aProxyAtADeniedAddressIsNotUsed(kind: ProxyRequest.Kind) async throws {
        let server = ScriptedServer([okay])
        defer { server.stop() }
        for url in ["http://o.invalid/", "https://o.invalid/"] {
            var request = try denying("[::1]") { TransfersTests.request(url) }
            request.proxy = ProxyRequest(kind: kind, host: "localhost", port: server.port)
            try await withEngine { engine in
                let failure = await engine.exchange(request).failure
                #expect(failure?.cause == .addressDenied)
            }
        }
        #expect(server.heard.isEmpty)
    }

    @Test func aRuleWithAPortAppliesToThatPortOnly() async throws {
        let server = ScriptedServer([okay], [okay])
        defer { server.stop() }
        try await withEngine { engine in
            let other = try denying("127.0.0.1:\(server.port - 1)") { TransfersTests.request(server.url) }
            #expect(await engine.exchange(other).text == "ok")
            let same = try denying("127.0.0.1:\(server.port)") { TransfersTests.request(server.url) }
            #expect(await engine.exchange(same).failure?.cause == .addressDenied)
        }
    }

    @Test func throughAProxyThePortIsTheProxys() async throws {
        let proxy = ScriptedServer([okay, okay, .hold])
        defer { proxy.stop() }
        try await withEngine { engine in
            var request = try denying("127.0.0.1:80") { TransfersTests.request("http://o.invalid/") }
            request.proxy = ProxyRequest(kind: .http, host: "127.0.0.1", port: proxy.port)
            #expect(await engine.exchange(request).text == "ok")
            #expect(await engine.exchange(request).text == "ok")
            request.deniedAddresses = AddressRules(denied: [try HostPattern("127.0.0.1:\(proxy.port)")])
            #expect(await engine.exchange(request).failure?.cause == .addressDenied)
        }
        #expect(proxy.heard.count == 1)
    }

    /// The configuration changes between the two requests.
    @Test(arguments: [ConnectionIdentity.none, .number(1)])
    func anExistingConnectionDoesNotBypassANewRule(identity: ConnectionIdentity) async throws {
        let server = ScriptedServer([okay, okay, .hold])
        defer { server.stop() }
        try await withEngine { engine in
            var request = TransfersTests.request(server.url)
            request.identity = identity
            #expect(await engine.exchange(request).text == "ok")
            request.deniedAddresses = AddressRules(denied: [try HostPattern("127.0.0.1")])
            #expect(await engine.exchange(request).failure?.cause == .addressDenied)
        }
        #expect(server.heard.count == 1 && server.heard[0].components(separatedBy: "GET ").count == 2)
    }

    /// The front opens after the connection: neither a new one nor the old one is used.
    @Test(arguments: ["127.0.0.1", "localhost", "[::ffff:127.0.0.1]", "0.0.0.0"])
    func anOwnPortIsDeniedFromTheMomentItOpens(host: String) async throws {
        let server = ScriptedServer([okay, .hold], [.hold])
        defer { server.stop() }
        let own = OwnPorts()
        var hosts = HostRules()
        hosts.own = own
        var request = TransfersTests.request("http://\(host):\(server.port)/")
        request.deniedAddresses = hosts.addresses
        let asked = request
        try await withEngine { engine in
            #expect(await engine.exchange(asked).text == "ok")
            own.set([server.port])
            let failure = await engine.exchange(asked).failure
            #expect(failure?.cause == .addressDenied)
            #expect(failure?.detail.contains("is a front of watchword") == true, "\(String(describing: failure))")
        }
        #expect(server.heard.count == 1 && server.heard[0].components(separatedBy: "GET ").count == 2)
    }

    @Test func anUnreachableServerIsNotReportedAsDenied() async throws {
        let (holder, port) = Loopback.reserve()
        defer { close(holder) }
        try await withEngine { engine in
            let request = try denying("10.0.0.1") { TransfersTests.request("http://127.0.0.1:\(port)/") }
            let failure = await engine.exchange(request).failure
            #expect(failure?.kind == .cannotConnect && failure?.cause == nil)
        }
    }
}
