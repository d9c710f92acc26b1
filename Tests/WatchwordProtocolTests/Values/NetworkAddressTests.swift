import Testing

@testable import WatchwordProtocol

@Suite struct NetworkAddressTests {
    @Test(arguments: [
        ("127.0.0.1", "127.0.0.1"), ("::ffff:127.0.0.1", "127.0.0.1"), ("[::FFFF:7f00:1]", "127.0.0.1"),
        ("2001:DB8:0::1", "2001:db8::1"), ("[fe80::1%eth0]", "fe80::1"), ("fe80::1%25eth0", "fe80::1"), ("::", "::"),
    ])
    func oneAddressHasOneForm(text: String, form: String) {
        #expect(NetworkAddress(text)?.description == form)
    }

    @Test(arguments: [
        "", "h", "localhost", "1", "0x7f000001", "017700000001", "127.1", "1.2.3.4.5", "256.1.1.1", "[1.2", "1\u{0}",
    ])
    func otherTextsAreNotAddresses(text: String) { #expect(NetworkAddress(text) == nil) }

    @Test(arguments: [
        ("localhost", "127.0.0.1"), ("X.LocalHost.", "127.0.0.1"), ("10.1.2.3", "10.1.2.3"), ("[::1]", "::1"),
    ])
    func someHostsNeedNoResolver(host: String, form: String) {
        #expect(NetworkAddress(host: host)?.description == form)
    }

    @Test(arguments: ["notlocalhost", "localhost.example", "h"])
    func otherHostsNeedAResolver(host: String) { #expect(NetworkAddress(host: host) == nil) }

    @Test(arguments: [
        ("64:ff9b::10.1.2.3", "10.1.2.3"), ("2002:0a01:0203::1", "10.1.2.3"), ("::10.1.2.3", "10.1.2.3"),
    ])
    func embeddedIPv4AddressesAreRecognised(text: String, form: String) {
        #expect(NetworkAddress(text)?.reached.map(\.description).last == form)
    }

    @Test func otherAddressesEmbedNoAddress() {
        for text in ["10.1.2.3", "2001:db8::1", "::1", "::"] { #expect(NetworkAddress(text)?.reached.count == 1) }
        #expect(NetworkAddress(bytes: [1, 2, 3]) == nil)
    }

    @Test func thisMachineHasManyAddresses() {
        for text in ["127.0.0.1", "127.255.0.9", "0.0.0.0", "::", "::1", "::ffff:0.0.0.0"] {
            #expect(NetworkAddress(text)?.isThisMachine == true, "\(text)")
        }
        for text in ["128.0.0.1", "10.0.0.1", "::2", "fe80::1"] {
            #expect(NetworkAddress(text)?.isThisMachine == false)
        }
    }
}
