import Foundation
import Glibc
import TestServers
import Testing

@testable import WatchwordProtocol

@Suite struct SecretMemoryTests {
    private func address(_ secret: Secret) -> UInt { secret.withUnsafeBytes { UInt(bitPattern: $0.baseAddress) } }

    private func make(_ count: Int, in memory: SecretMemory = .shared) -> Secret {
        Secret(capacity: count, in: memory) { block in
            block.initializeMemory(as: UInt8.self, repeating: 0x5A)
            return count
        }
    }

    private struct Mapping {
        var range: Range<UInt>
        var permissions: Substring
        var flags: Set<Substring> = []
    }

    /// Returns the mappings of proc_pid_smaps(5), in the order of the addresses.
    private func mappings() throws -> [Mapping] {
        let file = try #require(FileHandle(forReadingAtPath: "/proc/self/smaps"))
        let text = String(decoding: try file.readToEnd() ?? Data(), as: UTF8.self)
        var mappings: [Mapping] = []
        for line in text.split(separator: "\n") {
            let words = line.split(separator: " ")
            let ends = words[0].split(separator: "-").compactMap { UInt($0, radix: 16) }
            if ends.count == 2 { mappings.append(Mapping(range: ends[0]..<ends[1], permissions: words[1])) }
            if words[0] == "VmFlags:" { mappings[mappings.count - 1].flags = Set(words.dropFirst()) }
        }
        return mappings
    }

    /// The test runs in its own process, because reading the mappings of a large process takes long.
    @Test("Rule M1: a secret is locked, left out of dumps and wiped in children", .startsProcess)
    func aSecretIsLockedExcludedFromDumpsAndWipedInChildren() async {
        await #expect(processExitsWith: .success) {
            let tests = SecretMemoryTests()
            let secrets = [0, 1, 64, 65, 4096, 4097, 100_000].map { tests.make($0) }
            let mappings = try tests.mappings()
            for secret in secrets {
                #expect(secret.isLocked)
                let index = try #require(mappings.firstIndex { $0.range.contains(tests.address(secret)) })
                #expect(mappings[index].flags.isSuperset(of: ["lo", "dd", "wf"]))
                for neighbour in [mappings[index - 1], mappings[index + 1]] { #expect(neighbour.permissions == "---p") }
            }
        }
    }

    @Test func aFreedBlockIsWipedAndReused() {
        let memory = SecretMemory(lock: { mlock($0, $1) == 0 })
        var first: Secret? = make(50, in: memory)
        let place = first.map(address) ?? 0
        first = nil
        let second = Secret(capacity: 50, in: memory) { block in
            #expect(block.allSatisfy { $0 == 0 })
            return 50
        }
        #expect(address(second) == place)
    }

    @Test func secretsDoNotOverlap() {
        let secrets = (0..<1000).map { make(1 + $0 % 300) }
        let places = secrets.map { secret in (start: address(secret), end: address(secret) + UInt(secret.count)) }
            .sorted { $0.start < $1.start }
        #expect(zip(places, places.dropFirst()).allSatisfy { $0.end <= $1.start })
        #expect(secrets.allSatisfy { $0.withUnsafeBytes { $0.allSatisfy { $0 == 0x5A } } })
    }

    @Test func memoryThatTheKernelDoesNotLockIsReportedAsUnlocked() {
        let memory = SecretMemory(lock: { _, _ in false })
        #expect(!make(10, in: memory).isLocked)
        #expect(!make(10_000, in: memory).isLocked)
    }
}
