import CCurl
import Glibc
import TestServers
import Testing

/// Copies of a password that remain in the process after a transfer.
@Suite struct LibcurlMemoryTests {
    /// The password, inverted so that the search does not find it here. The searched part begins with a byte that other tests do
    /// not fill megabytes with, because each occurrence of it is compared.
    private static let hidden = (0..<40).map { index in
        (index == searched ? UInt8(ascii: "~") : UInt8.random(in: 0x61...0x7A)) ^ 0xFF
    }
    private static let searched = 20

    private func lend(_ body: (UnsafeMutablePointer<CChar>) -> Void) {
        let text = UnsafeMutablePointer<CChar>.allocate(capacity: Self.hidden.count + 1)
        for (index, byte) in Self.hidden.enumerated() { text[index] = CChar(byte ^ 0xFF) }
        text[Self.hidden.count] = 0
        body(text)
        explicit_bzero(text, Self.hidden.count)
        text.deallocate()
    }

    /// Returns the number of copies of the password's last bytes in writable memory: the first bytes are overwritten by free(3).
    private func copies() -> Int {
        // Searches exclude each other: each would find the bytes that the other one reads.
        let turn = open("/proc/self/exe", O_RDONLY | O_CLOEXEC)
        flock(turn, LOCK_EX)
        defer { close(turn) }
        let memory = open("/proc/self/mem", O_RDONLY)
        defer { close(memory) }
        let maps = fopen("/proc/self/maps", "r")
        defer { fclose(maps) }
        var (count, line) = (0, [CChar](repeating: 0, count: 512))
        let wanted = Self.hidden.suffix(from: Self.searched)
        while fgets(&line, Int32(line.count), maps) != nil {
            let parts = String(decoding: line.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
                .split(separator: " ")
            let range = parts[0].split(separator: "-").compactMap { UInt(String($0), radix: 16) }
            guard parts[1].hasPrefix("rw"), range.count == 2 else { continue }
            count += occurrences(of: Array(wanted), in: range[0]..<range[1], memory)
        }
        return count
    }

    private func occurrences(of wanted: [UInt8], in range: Range<UInt>, _ memory: Int32) -> Int {
        let size = 1 << 20
        let block = UnsafeMutablePointer<UInt8>.allocate(capacity: size + wanted.count)
        let itself = UInt(bitPattern: block)..<UInt(bitPattern: block + size + wanted.count)
        defer {
            explicit_bzero(block, size + wanted.count)
            block.deallocate()
        }
        var (count, place) = (0, range.lowerBound)
        while place < range.upperBound {
            let got = pread(
                memory, block, Int(min(UInt(size + wanted.count - 1), range.upperBound - place)), off_t(place))
            var index = 0
            while got - index >= wanted.count,
                let found = memchr(block + index, Int32(wanted[0] ^ 0xFF), got - wanted.count + 1 - index)
            {
                index = found - UnsafeMutableRawPointer(block)
                let isSame = wanted.indices.allSatisfy { block[index + $0] ^ 0xFF == wanted[$0] }
                if isSame && !itself.contains(place + UInt(index)) { count += 1 }
                index += 1
            }
            place += UInt(size)
        }
        return count
    }

    @Test("Rule L9: with wiping allocators libcurl leaves no copy of a secret", .startsProcess)
    func wipingAllocatorsLeaveNoCopies() async {
        // In a process of its own: other tests may have initialized libcurl with other allocators.
        await #expect(processExitsWith: .success) { LibcurlMemoryTests().searchAfterTransfer() }
    }

    private func searchAfterTransfer() {
        let server = ScriptedServer([
            .bytes("HTTP/1.1 401 No\r\nWWW-Authenticate: Digest realm=\"r\", nonce=\"n\"\r\nContent-Length: 0\r\n\r\n"),
            .bytes("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"),
        ])
        defer { server.stop() }
        #expect(copies() == 0)
        lend { _ in #expect(copies() == 1, "the search does not find an existing copy") }
        do {
            let probe = Probe(server.url)
            probe.set(CURLOPT_PROXY, "")
            probe.set(CURLOPT_USERNAME, "user")
            probe.set(CURLOPT_HTTPAUTH, 1 << 1)
            lend { precondition(setPassword(probe.easy, $0)) }
            #expect(probe.perform() == CURLE_OK)
            #expect(copies() >= 1, "libcurl leaves no password in memory: review whether its allocators must wipe")
        }
        #expect(copies() == 0, "libcurl leaves a password in memory: review its allocators and copies")
    }

    private func setPassword(_ easy: UnsafeMutableRawPointer, _ text: UnsafePointer<CChar>) -> Bool {
        watchword_curl_easy_set_string(easy, CURLOPT_PASSWORD, text) == CURLE_OK
    }
}
