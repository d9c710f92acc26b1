import ArgumentParser
import CPlatform
import JSONText
import WatchwordClient
import WatchwordProtocol

/// The fetches of one command, once it is known what they are.
struct FetchRun {
    var items: [FetchItem]
    var location: SocketLocation
    /// Whether a broker is started when none runs.
    var mayStart: Bool
    var showsProgress: Bool
    var keep = Keep.session
    var isInsecure = false
    var isBarOnly = false
    var isVerbose = false
    var atOnce = 1
    /// `--fail-early`
    var endsEarly = false

    /// - Throws: the code to end with, when it is not 0.
    func run(interrupt: Int32 = watchword_interrupt_descriptor()) throws {
        var code = ExitCode.success
        do {
            let connection = try BrokerLauncher.connect(location, mayStart: mayStart)
            connection.interruptDescriptor = interrupt
            try connection.initialize(name: "watchword", version: WatchwordVersion.current, delivery: .request)
            // One question at a time is shown: the time for the next one is to begin with it.
            if atOnce > 1 { _ = try connection.call(.authSubscribe, ["maxPending": 1]) }
            let session = FetchSession(
                items, on: connection, atOnce: atOnce, showsProgress: showsProgress, isBarOnly: isBarOnly,
                endsEarly: endsEarly
            ) { item in
                TerminalQuestion(item.params, keep: keep, isInsecure: isInsecure, interrupt: interrupt)
            }
            code = try session.run(isVerbose: isVerbose)
        } catch let failure as ClientFailure {
            throw report(failure)
        }
        if code != .success { throw code }
    }
}
