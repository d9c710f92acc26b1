import Glibc
import Testing

@testable import watchword

struct ExistingFileTests {
    @Test func onlyARegularFileOfThisUserWithOneNameIsContinued() {
        #expect(ExistingFile(mode: S_IFREG | 0o600, owner: 1000, links: 1).problem(for: 1000) == nil)
        for (file, problem) in [
            (ExistingFile(mode: S_IFREG | 0o600, owner: 1001, links: 1), "it belongs to user 1001, not to user 1000"),
            // Files of root belong to another user, too; for root, all other files do.
            (ExistingFile(mode: S_IFREG | 0o600, owner: 0, links: 1), "it belongs to user 0, not to user 1000"),
            (ExistingFile(mode: S_IFREG | 0o600, owner: 1000, links: 2), "it has 2 hard links"),
            (ExistingFile(mode: S_IFLNK | 0o777, owner: 1000, links: 1), "it is a symbolic link"),
            (ExistingFile(mode: S_IFIFO | 0o600, owner: 1000, links: 1), "it is not a regular file"),
            (ExistingFile(mode: S_IFDIR | 0o700, owner: 1000, links: 1), "it is not a regular file"),
        ] {
            #expect(file.problem(for: 1000) == problem)
        }
    }

    @Test func linksOfTheSystemAreTrustedAndThoseOfOthersAreNot() {
        let link = { ExistingFile(mode: S_IFLNK | 0o777, owner: $0, links: 1) }
        #expect(link(0).isTrusted(by: 1000) && link(1000).isTrusted(by: 1000))
        #expect(!link(1001).isTrusted(by: 1000) && !link(1000).isTrusted(by: 0))
    }

    @Test func ownersOfUnnamedPipesAreIgnored() {
        let pipe = ExistingFile(mode: S_IFIFO | 0o600, owner: geteuid() &+ 1000, links: 1)
        #expect(
            SpecialFile.isStrange(pipe, isUnidentified: false) && !SpecialFile.isStrange(pipe, isUnidentified: true))
    }
}
