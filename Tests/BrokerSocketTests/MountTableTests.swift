import Testing

@testable import BrokerSocket

@Suite struct MountTableTests {
    private let table = MountTable(
        Array(
            """
            23 29 0:21 / /proc rw,nosuid - proc proc rw
            230 29 0:45 / /home/a\\040-\\040b rw shared:1 master:7 - fuse.sshfs host:/ rw
            24 29 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw
            25 29 0:46 / /mnt rw - nfs4 server:/ rw
            26 29 0:47 / /share rw shared:9 - 9p share rw
            27 29 0:48 / /broken rw
            28 29 0:49 / /run rw - tmpfs tmpfs rw
            """.utf8))

    @Test(arguments: [
        ("23", true), ("24", true), ("28", true), ("230", false), ("25", false), ("26", false), ("27", false),
        ("2", false), ("29", false), ("", false),
    ])
    func aMountIsFoundByItsNumber(number: String, isLocal: Bool) {
        #expect(table.isLocal(Array(number.utf8)) == isLocal)
    }

    @Test func linesEndWithLineFeedsOrTheText() {
        #expect(Array("a\n\nbc".utf8).lines.map { String(decoding: $0, as: UTF8.self) } == ["a", "", "bc"])
        #expect(Array("a\n".utf8).lines.map { String(decoding: $0, as: UTF8.self) } == ["a"])
        #expect([UInt8]().lines.map { $0 }.isEmpty)
    }
}
