import Testing
import WatchwordProtocol

@testable import WatchwordCore

/// Servers and proxies as challengers: SEMANTICS rule 19.
@Suite struct ChallengerTests {
    private let server = Challenger.server(Origin(scheme: .http, host: "h", port: 3128))

    @Test("Rule 19: server and proxy never match")
    func serverAndProxyNeverMatch() {
        let types: [ProxyType] = [.http, .https, .socks]
        let proxies = types.map { Challenger.proxy(ProxyEndpoint(type: $0, host: "h", port: 3128)) }
        #expect(Set(proxies + [server]).count == 4)
        let spaces = (proxies + [server]).map { $0.space(realm: "r", .httpBasic) }
        #expect(Set(spaces).count == 4)
        #expect(spaces.map(Challenger.init) == proxies + [server])
    }

    @Test func aSpaceLeadsBackToItsChallenger() {
        let origins: [Origin.Scheme] = [.http, .https]
        for challenger in origins.map({ Challenger.server(Origin(scheme: $0, host: "[::1]", port: 1)) }) {
            #expect(Challenger(challenger.space(realm: nil, .serverTrust)) == challenger)
        }
    }

    @Test("Rule B7: TLS and this machine count as secure, for servers and proxies")
    func connectionsThatOthersCannotRead() throws {
        let request = try FetchRequest(FetchRunParams(url: "http://h/"), subscription: nil)
        var chain = RedirectChain(SharedFetchRequest(request))
        let isSecure: [(Challenger, Bool)] = [
            (server, false), (.server(Origin(scheme: .https, host: "h", port: 1)), true), (here, true),
            (.proxy(wayOut), false), (.proxy(ProxyEndpoint(type: .https, host: "p", port: 1)), true),
            (.proxy(ProxyEndpoint(type: .socks, host: "p", port: 1)), false),
            (.proxy(ProxyEndpoint(type: .http, host: "127.0.0.1", port: 1)), true),
        ]
        for (challenger, expected) in isSecure {
            #expect(chain.isReadable(challenger) == !expected, "\(challenger.text)")
        }
        // Behind a proxy "localhost" is another machine; the proxy itself may still be on this one.
        #expect(try chain.chooseRoute(ProxyRule(endpoint: wayOut), now: .zero) == true)
        #expect(chain.isReadable(here))
        #expect(!chain.isReadable(.proxy(ProxyEndpoint(type: .http, host: "127.0.0.1", port: 1))))
    }

    @Test func peopleSeeWhichOneItIs() {
        #expect(server.text == "http://h:3128")
        #expect(Challenger.proxy(wayOut).text == "the proxy http://p:3128")
    }
}
