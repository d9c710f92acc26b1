import ArgumentParser
import Glibc
import JSONText
import WatchwordClient
import WatchwordProtocol

/// Where the broker is; common to all sub-commands that talk to it.
struct SocketOption: ParsableArguments {
    @Option(
        help: ArgumentHelp(
            "The broker's socket, in place of $WATCHWORD_SOCKET or the user's run-time folder.", valueName: "path"))
    var socket: String?

    var location: SocketLocation { Self.location(explicit: socket) }

    static func location(explicit: String?) -> SocketLocation {
        SocketLocation(
            explicit: explicit, environment: { name in getenv(name).map { String(cString: $0) } }, uid: getuid())
    }

    /// Makes one call to the broker that runs. None is started for it; what goes wrong is said in one line.
    func call(
        _ method: MethodName, _ params: JSON = [:], within limit: Duration = Patience.withTheBroker
    ) throws -> JSON {
        do throws(ClientFailure) {
            let connection = try BrokerConnection(location)
            connection.callLimit = limit
            return try connection.call(method, params)
        } catch {
            throw reportRefusal(error)
        }
    }
}

/// How long a call may take.
enum Patience {
    /// Where nobody is asked.
    static let withTheBroker = Duration.seconds(15)
    /// Where the keyring may show a window.
    static let withPeople = Duration.seconds(180)
}

/// For commands that start a broker when none runs.
struct BrokerOptions: ParsableArguments {
    @OptionGroup var socket: SocketOption

    @Flag(help: "Do not start a broker when none runs.")
    var noStart = false

    func connect() throws(ClientFailure) -> BrokerConnection {
        try BrokerLauncher.connect(socket.location, mayStart: !noStart)
    }
}
