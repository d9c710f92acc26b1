import Testing
import WatchwordProtocol

@Suite struct FrontAddressTests {
    @Test(arguments: [
        ("127.0.0.1:3128", FrontAddress.ipv4(port: 3128)), ("127.0.0.1:0", .ipv4(port: 0)),
        ("[::1]:65535", .ipv6(port: 65_535)),
        ("/run/user/1000/front", .socket(path: "/run/user/1000/front")),
    ])
    func anAddressIsParsedAndPrinted(text: String, address: FrontAddress) throws {
        #expect(try FrontAddress(text) == address)
        #expect(address.text == text)
    }

    @Test(arguments: [
        "", "3128", ":3128", "0.0.0.0:3128", "[::]:3128", "::1:3128", "localhost:3128", "127.0.0.2:3128",
        "192.0.2.1:3128", "127.0.0.1", "127.0.0.1:", "127.0.0.1:65536", "127.0.0.1:-1", "127.0.0.1:+1", "127.0.0.1: 1",
        "127.0.0.1:1x",
        "127.0.0.1:99999999999999999999", "[::1]", "[::1]:", "[::ffff:127.0.0.1]:1", "run/front", "*:3128",
    ])
    func onlyLoopbackIsAllowed(text: String) {
        #expect {
            try FrontAddress(text)
        } throws: { error in
            (error as? Refusal)?.text.contains("write 127.0.0.1:PORT, [::1]:PORT or an absolute path")
                == true
        }
    }

    @Test func aPathHasALimitedLength() throws {
        let longest = "/" + String(repeating: "a", count: SocketLocation.longestPath - 1)
        #expect(try FrontAddress(longest) == .socket(path: longest))
        #expect(throws: Refusal.self) { try FrontAddress(longest + "a") }
        #expect(throws: Refusal.self) { try FrontAddress("/a\u{0}b") }
    }
}
