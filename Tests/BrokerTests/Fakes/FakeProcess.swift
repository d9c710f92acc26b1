import WatchwordProtocol

@testable import Broker

/// A process with fixed answers.
struct FakeProcess: PeerProcess {
    let executable: String?
    let subject: Subject

    func currentSubject(after first: Subject) -> Subject { subject }

    func currentExecutable() -> String? { executable }

    func runsFile(_ path: String) -> Bool { true }
}
