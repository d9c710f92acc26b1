import Testing
import WatchwordProtocol

/// The accounts that passwords belong to.
@Suite struct AccountTests {
    @Test func oneUserNameInTwoDomainsIsTwoAccounts() {
        let names: [Account] = [
            "bob", Account(user: "bob", domain: "ONE"), Account(user: "bob", domain: "TWO"), "k", "\u{212A}",
        ]
        #expect(Set(names).count == names.count)
        #expect(Account(user: "bob", domain: "") == "bob")
    }

    @Test func aNameWithoutADomainIsMeantInEveryDomain() {
        let bob = Account(user: "bob", domain: "ONE")
        #expect(Account("bob").admits(bob))
        #expect(Account("ONE\\bob").admits(bob))
        #expect(bob.admits(bob))
        for other: Account in ["ONE", "TWO\\bob", "Bob", Account(user: "bob", domain: "TWO")] {
            #expect(!other.admits(bob), "\(other)")
        }
        #expect(!bob.admits("bob"))
    }
}
