import Synchronization
import WatchwordCore
import WatchwordProtocol

/// A slow disk: grants are written when a test calls `write`.
final class FakeConsents: ConsentPort {
    private let waiting = Mutex<[@Sendable (String?) -> Void]>([])

    func permanentConsents() -> [PermanentConsent] {
        let space = ProtectionSpace(scheme: "http", host: "h", port: 80, realm: "r", authenticationMethod: .httpBasic)
        return [Subject(.exe, "/usr/bin/one"), Subject(.exe, "/usr/bin/two")].map {
            PermanentConsent(subject: $0, space: space, user: "bob")
        }
    }

    func store(_ grants: [PermanentConsent]) {}

    func whenStored(_ completion: @escaping @Sendable (String?) -> Void) { waiting.withLock { $0.append(completion) } }

    func write(failure: String? = nil) {
        let calls = waiting.withLock { waiting in
            defer { waiting = [] }
            return waiting
        }
        for call in calls { call(failure) }
    }
}
