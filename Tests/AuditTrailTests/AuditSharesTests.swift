import JSONText
import Testing
import WatchwordProtocol

@testable import AuditTrail

/// The room of the audit log is divided fairly among kinds of records, programs, and logins.
@Suite struct AuditSharesTests {
    /// Returns the records that remain of these, of 10 bytes each, in a file of `budget` bytes.
    private func kept(_ paths: [[Int]], budget: Int) -> [Int] {
        var shares = AuditShares()
        for path in paths { shares.add(path, 10) }
        shares.divide(budget)
        return paths.indices.filter { !shares.removes(paths[$0], 10) }
    }

    @Test func everythingRemainsIfThereIsRoom() {
        #expect(kept([[1, 1], [1, 2], [2, 1]], budget: 30) == [0, 1, 2])
    }

    @Test("Rule G10: many records of one kind do not displace one of another")
    func aGroupDisplacesNoSmallerOne() {
        let paths = [[1, 1]] + Array(repeating: [2, 1], count: 100)
        #expect(kept(paths, budget: 50) == [0, 97, 98, 99, 100])
    }

    @Test func aProgramDisplacesNoOtherOneOfTheSameKind() {
        let paths = [[1, 1], [1, 2]] + Array(repeating: [1, 3], count: 100)
        #expect(kept(paths, budget: 50) == [0, 1, 99, 100, 101])
    }

    /// However many programs there are, they share the room of their kind.
    @Test func manyProgramsDisplaceNoRecordOfAnotherKind() {
        let paths = [[1, 0]] + (0..<100).map { [2, $0] }
        #expect(kept(paths, budget: 50) == [0, 97, 98, 99, 100])
    }

    @Test func groupsShareEqually() {
        let paths = (0..<100).map { [$0 % 2, 0] }
        #expect(kept(paths, budget: 100) == Array(90..<100))
    }

    @Test func theNumberOfGroupsIsBounded() {
        var shares = AuditShares()
        let names = 0..<(AuditShares.mostGroups + 100)
        for name in names { shares.add([1, name + 1], 10) }
        shares.divide(1000)
        let kept = names.filter { !shares.removes([1, $0 + 1], 10) }
        #expect(kept.count <= 101 && shares.count <= AuditShares.mostGroups + 2)
    }

    // MARK: The groups of records

    private func share(_ kind: AuditEvent.Kind, _ change: (inout AuditEvent) -> Void = { _ in }) -> [Int] {
        var event = AuditEvent(kind, timeMs: 0)
        event.client = AuditEvent.Client(name: "a", pid: 1, uid: 1, executable: "/usr/bin/a")
        change(&event)
        return AuditEvent.share(ofLine: event.json.serialized(terminator: "\n")[...])
    }

    @Test(arguments: AuditEvent.Kind.allCases)
    func eachKindHasItsOwnShare(_ kind: AuditEvent.Kind) {
        for other in AuditEvent.Kind.allCases where other != kind { #expect(share(kind)[0] != share(other)[0]) }
    }

    /// A program can supply any number of logins itself, but uses only what is stored.
    @Test func theSourceOfALoginHasItsOwnShare() {
        let shares = CredentialSource.allCases.map { source in share(.credentialUsed) { $0.source = source }[0] }
        #expect(Set(shares).count == CredentialSource.allCases.count)
    }

    /// A program that has many processes, or changes the name that it gives, has one share.
    @Test func aProgramIsItsFile() {
        let first = share(.denied)
        #expect(
            share(.denied) {
                $0.client?.pid = 2
                $0.client?.name = "b"
            } == first)
        #expect(share(.denied) { $0.client?.executable = "/usr/bin/b" }[1] != first[1])
        #expect(share(.denied) { $0.client?.script = "/usr/bin/b.py" }[1] != first[1])
        #expect(share(.denied) { $0.origin = "http://h" }.dropLast() == first.dropLast())
    }
}
