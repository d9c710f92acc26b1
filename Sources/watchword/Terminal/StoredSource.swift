/// Names the sources of stored and ambient logins.
enum StoredSource {
    /// Returns the words after "the login", such as "from the keyring"; `nil` for any other source.
    static func words(_ source: String?) -> String? {
        switch source {
        case "session": "from the session"
        case "keyring": "from the keyring"
        case "ambient": "from the Kerberos ticket"
        case "netrc": "from the netrc file"
        case "command": "from the configured command"
        default: nil
        }
    }
}
