import Testing
import WatchwordProtocol

@testable import WatchwordCore

/// Secrets with additional lines, as git's helper for libsecret writes them.
@Suite struct KeyringSecretTests {
    @Test(arguments: ["pw", "", "pw\n", "a\nb", "pw\nno sense\n", "p=q", "pw\n=x", "pw\nA=b"])
    func aTextWithoutGitsLinesIsAPassword(text: String) {
        let read = KeyringSecret(secret(text))
        #expect(read?.password.revealed == text)
        #expect(read?.expiresAt == nil && read?.refreshToken == nil)
    }

    @Test(
        arguments: [
            ("pw\npassword_expiry_utc=100\noauth_refresh_token=r=1", 100, "r=1"),
            ("pw\noauth_refresh_token=r\n", nil, "r"),
            ("pw\npassword_expiry_utc=0\n\n", 0, nil), ("pw\npassword_expiry_utc=7\nno sense", 7, nil),
            ("pw\nnew_line=1", nil, nil),
        ] as [(String, Int?, String?)])
    func linesOfGitAreNotPartOfThePassword(text: String, expiry: Int?, token: String?) {
        let read = KeyringSecret(secret(text))
        #expect(read?.password.revealed == "pw")
        #expect(read?.expiresAt == expiry.map { .seconds($0) })
        #expect(read?.refreshToken?.revealed == token)
    }

    @Test(
        "Rule 26: a malformed expiry makes a keyring item unusable",
        arguments: ["", "soon", "-1", "1.5", "9999999999999", "253402300800", " 1"])
    func aMalformedExpiryMakesAKeyringItemUnusable(expiry: String) {
        #expect(KeyringSecret(secret("pw\npassword_expiry_utc=\(expiry)")) == nil)
    }

    @Test func aWrittenCredentialIsReadBack() {
        var credential = login("bob", "pw")
        #expect(KeyringSecret.text(of: credential) == credential.secret)
        credential.expiresAt = .seconds(100)
        credential.refreshToken = secret("r")
        let text = KeyringSecret.text(of: credential)
        #expect(text.revealed == "pw\npassword_expiry_utc=100\noauth_refresh_token=r")
        #expect(KeyringSecret(text)?.expiresAt == .seconds(100))
    }
}
