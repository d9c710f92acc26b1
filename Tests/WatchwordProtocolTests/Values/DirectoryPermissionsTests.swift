import Testing
import WatchwordProtocol

@Suite struct DirectoryPermissionsTests {
    @Test(
        "Rule X6: a directory in which another user can replace files is refused",
        arguments: [
            (7, 0o700, true, true), (0, 0o755, true, true), (7, 0o755, true, true), (8, 0o700, false, false),
            (7, 0o770, false, false), (7, 0o702, false, false), (0, 0o1777, false, true), (7, 0o1770, false, true),
            (8, 0o1777, false, false),
        ] as [(UInt32, UInt32, Bool, Bool)])
    func aDirectoryInWhichOthersCanReplaceFilesIsRefused(owner: UInt32, mode: UInt32, holdsSocket: Bool, isAbove: Bool)
    {
        let permissions = DirectoryPermissions(owner: owner, mode: 0o40000 | mode)
        #expect((permissions.problem(uid: 7) == nil) == holdsSocket)
        #expect((permissions.problem(uid: 7, as: .ancestor) == nil) == isAbove)
    }

    @Test func theProblemNamesTheModeOrTheOwner() {
        #expect(DirectoryPermissions(owner: 8, mode: 0o700).problem(uid: 7) == "belongs to user 8")
        let problem = DirectoryPermissions(owner: 7, mode: 0o41777).problem(uid: 7)
        #expect(problem == "can be written by other users (mode 01777)")
    }
}
