import ArgumentParser
import JSONText
import WatchwordClient
import WatchwordProtocol

/// The socket of the broker, for all commands that connect to it.
struct SocketOption: ParsableArguments {
    @Option(
        help: ArgumentHelp(
            "The broker's socket, instead of $WATCHWORD_SOCKET or the default path.", valueName: "path"))
    var socket: String?

    var location: SocketLocation { SocketLocation(ofThisProcess: socket) }

    /// Calls one method of the running broker, and does not start one. Prints errors in one line and throws an `ExitCode`.
    func call(_ method: some CallableMethod, within limit: Duration = Patience.withTheBroker) throws -> JSON {
        do throws(ClientFailure) {
            let connection = try BrokerConnection(location)
            connection.callLimit = limit
            return try connection.call(method)
        } catch {
            throw reportRefusal(error)
        }
    }
}

/// Time limits for calls.
enum Patience {
    /// For calls that the broker answers without a prompt.
    static let withTheBroker = Duration.seconds(15)
    /// For calls during which the keyring may show a prompt.
    static let withPeople = Duration.seconds(180)
}

/// The options of commands that start a broker if none is running.
struct BrokerStartOptions: ParsableArguments {
    @OptionGroup var socket: SocketOption

    @Flag(help: "Do not start a broker if none is running.")
    var noStart = false

    func connect() throws(ClientFailure) -> BrokerConnection {
        try BrokerLauncher.connect(socket.location, mayStart: !noStart)
    }
}
