import Testing
import WatchwordProtocol

@testable import WatchwordCore

/// `fetch.deny`: by name before a fetch, by address before a connection.
@Suite struct AddressRulesTests {
    private func rules(_ patterns: String...) throws -> AddressRules {
        AddressRules(denied: try patterns.map { try HostPattern($0) })
    }

    private func denies(_ rules: AddressRules, _ address: String, _ port: Int = 80) -> Bool {
        NetworkAddress(address).map { rules.denies($0, port: port) } ?? false
    }

    private func isDenied(_ hosts: HostRules, _ url: String) -> Bool {
        guard let place = try? FetchURL(url) else { return true }
        do throws(FetchFailure) {
            try hosts.check(place.origin)
            return false
        } catch {
            return error.kind == .denied
        }
    }

    private func isDenied(_ hosts: HostRules, proxy: String, isNamedByFetch: Bool) throws -> Bool {
        let route = ProxyRoute(endpoint: try ProxyEndpoint(proxy), isNamedByFetch: isNamedByFetch)
        do throws(FetchFailure) {
            try hosts.check(route)
            return false
        } catch {
            return error.kind == .denied
        }
    }

    @Test func anAddressIsDeniedHoweverItIsReached() throws {
        let rules = try rules("10.1.2.3")
        for address in ["10.1.2.3", "::ffff:10.1.2.3", "::10.1.2.3", "64:ff9b::a01:203", "2002:a01:203::1"] {
            #expect(denies(rules, address), "\(address)")
        }
        for address in ["10.1.2.4", "2001:db8::a01:203", "127.0.0.1"] { #expect(!denies(rules, address), "\(address)") }
    }

    @Test(arguments: ["127.0.0.1", "[::1]", "localhost", ".localhost", "0.0.0.0", "127.0.0.53", "[::ffff:127.0.0.1]"])
    func aRuleForOneLoopbackAddressAppliesToAll(pattern: String) throws {
        let rules = try rules(pattern)
        for address in ["127.0.0.1", "127.9.9.9", "::1", "0.0.0.0", "::", "::ffff:127.0.0.1", "64:ff9b::7f00:1"] {
            #expect(denies(rules, address), "\(address)")
        }
        #expect(!denies(rules, "10.0.0.1"))
    }

    @Test func aRuleWithAPortAppliesToThatPortOnly() throws {
        let rules = try rules("127.0.0.1:8080")
        #expect(denies(rules, "::1", 8080) && !denies(rules, "::1", 80))
    }

    @Test func namesAreNotAddressRules() throws {
        #expect(try rules("h", "*.example", "*.localhost", "x.localhost").isEmpty && AddressRules().isEmpty)
    }

    @Test func namesOfThisMachineAreKnownBeforeTheyAreResolved() throws {
        let hosts = HostRules(denied: [try HostPattern("127.0.0.1")])
        for url in [
            "http://127.0.0.1/", "http://localhost/", "http://x.localhost./", "http://0.0.0.0/", "http://[::]/",
            "http://[::ffff:127.0.0.1]/", "http://[::1]/", "http://127.9.9.9/", "http://0x7f000001/",
            "http://2130706433/",
            "http://017700000001/", "http://127.1/",
        ] {
            #expect(isDenied(hosts, url), "\(url)")
        }
        #expect(!isDenied(hosts, "http://h/") && !isDenied(hosts, "http://10.0.0.1/"))
    }

    @Test(
        "The broker does not connect to its own addresses under any name, also through a proxy",
        arguments: [
            ("127.0.0.1:3128", true), ("[::1]:3128", true), ("[::ffff:127.0.0.1]:3128", true), ("localhost:3128", true),
            ("localhost.:3128", true), ("a.localhost:3128", true), ("0.0.0.0:3128", true),
            ("[::]:3128", true), ("[::ffff:0.0.0.0]:3128", true), ("127.0.0.2:3128", true),
            ("127.0.0.1:3130", false), ("192.0.2.1:3128", false), ("h:3128", false),
        ])
    func ownAddressesAreDeniedToEveryone(target: String, isRefused: Bool) throws {
        let own = OwnPorts()
        var hosts = HostRules()
        hosts.own = own
        #expect(!isDenied(hosts, "http://\(target)/"))
        own.set([3128])
        #expect(isDenied(hosts, "http://\(target)/") == isRefused)
        #expect(isDenied(hosts, "https://\(target)/") == isRefused)
        for isNamed in [true, false] {
            #expect(try isDenied(hosts, proxy: "http://\(target)", isNamedByFetch: isNamed) == isRefused)
        }
    }

    @Test func ownAddressesAreDeniedAfterResolution() throws {
        let own = OwnPorts()
        var hosts = HostRules()
        hosts.own = own
        let rules = hosts.addresses
        #expect(!rules.isEmpty && !rules.concerns(port: 3128) && !denies(rules, "127.0.0.1", 3128))
        own.set([3128])
        for address in ["127.0.0.1", "::1", "0.0.0.0", "::", "::ffff:127.0.0.1", "::ffff:0.0.0.0", "64:ff9b::7f00:1"] {
            #expect(denies(rules, address, 3128) && !denies(rules, address, 80), "\(address)")
        }
        #expect(rules.concerns(port: 3128) && !denies(rules, "192.0.2.1", 3128))
        own.set([])
        #expect(!denies(rules, "127.0.0.1", 3128))
    }

    @Test func theServerOfAPACFileIsOnlyCheckedForDenial() throws {
        let denied = HostRules(denied: [try HostPattern("127.0.0.1")])
        let origin = try FetchURL("http://x.localhost/").origin
        #expect(throws: FetchFailure.self) { try denied.check(script: origin) }
        try HostRules(allowed: []).check(script: origin)
    }

    @Test func proxiesAreCheckedToo() throws {
        let denied = HostRules(denied: [try HostPattern("127.0.0.1"), try HostPattern("p:3128")])
        for isNamed in [true, false] {
            for proxy in ["http://127.0.0.1:1", "https://[::1]:1", "socks5h://a.localhost:1", "http://p:3128"] {
                #expect(try isDenied(denied, proxy: proxy, isNamedByFetch: isNamed), "\(proxy)")
            }
            #expect(try !isDenied(denied, proxy: "http://p:8080", isNamedByFetch: isNamed))
        }
        let allowed = HostRules(allowed: [try HostPattern("h")])
        #expect(try isDenied(allowed, proxy: "http://p:3128", isNamedByFetch: true))
        #expect(try !isDenied(allowed, proxy: "http://p:3128", isNamedByFetch: false))
        #expect(try !isDenied(allowed, proxy: "http://h:3128", isNamedByFetch: true))
    }
}
