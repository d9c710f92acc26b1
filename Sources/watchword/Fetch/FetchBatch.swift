import ArgumentParser
import CPlatform
import JSONText
import WatchwordClient
import WatchwordProtocol

/// Runs the fetches of one command.
struct FetchBatch {
    var items: [FetchItem]
    var location: SocketLocation
    /// Whether to start a broker if none is running.
    var mayStart: Bool
    var showsProgress: Bool
    var storage = LoginStorage.session
    var isInsecure = false
    var isBarOnly = false
    var isVerbose = false
    var maxConcurrent = 1
    /// `--fail-early`
    var endsEarly = false

    /// - Throws: the exit code, if it is not 0.
    func run(interrupt: Int32 = watchword_interrupt_descriptor()) throws {
        var code = ExitCode.success
        do {
            let connection = try BrokerLauncher.connect(location, mayStart: mayStart)
            connection.interruptDescriptor = interrupt
            try connection.initialize(name: "watchword", version: WatchwordVersion.current, delivery: .request)
            // Only one prompt is shown at a time. With this limit, the broker sends the next challenge, and starts its
            // timeout, after the previous one is answered.
            if maxConcurrent > 1 { try connection.call(AuthSubscribe.name, ["maxPending": 1]) }
            let session = FetchSession(
                items, on: connection, maxConcurrent: maxConcurrent, showsProgress: showsProgress, isBarOnly: isBarOnly,
                endsEarly: endsEarly
            ) { item in
                TerminalQuestion(item.params, storage: storage, isInsecure: isInsecure, interrupt: interrupt)
            }
            code = try session.run(isVerbose: isVerbose)
        } catch let failure as ClientFailure {
            throw report(failure)
        }
        if code != .success { throw code }
    }
}
