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

/// `--json`, for commands that print a result of the broker.
struct JSONOption: ParsableArguments {
    @Flag(help: "Print the result of the broker as JSON.")
    var json = false

    /// Prints the result as JSON with `--json`, otherwise `text`.
    func show(_ result: JSON, _ text: String) { print(json ? result.line : text) }
}

/// The options of commands that make one call and print its result.
struct CallOptions: ParsableArguments {
    @OptionGroup var output: JSONOption
    @OptionGroup var broker: SocketOption

    /// Calls a method, and prints the result as JSON with `--json`, otherwise `text`.
    /// - Returns: the result.
    @discardableResult
    func show(
        _ method: some CallableMethod, within limit: Duration = Patience.withTheBroker,
        text: (_ result: JSON) throws -> String
    ) throws -> JSON {
        let result = try broker.call(method, within: limit)
        output.show(result, try text(result))
        return result
    }

    /// Calls a method, and prints a list in its result as a table.
    /// - Parameters:
    ///   - list: the member of the result.
    ///   - none: the text for an empty list.
    @discardableResult
    func show(
        _ method: some CallableMethod, list: String, none: String, heading: [String], row: (JSON) -> [String]
    ) throws -> JSON {
        try show(method) { result in
            let rows = result.list(list).map(row)
            return rows.isEmpty ? none : TextTable.text([heading] + rows)
        }
    }
}

extension JSON {
    /// The value as one line, without the line end.
    var line: String { String(decoding: serialized(), as: UTF8.self) }

    /// The elements of a member; none if it is missing.
    func list(_ name: String) -> [JSON] { self[name]?.elements ?? [] }

    /// A member that is text, safe for a terminal; empty if it is missing.
    func shown(_ name: String) -> String { (self[name]?.string ?? "").shortened }

    func shown(_ name: String, to limit: Int) -> String { (self[name]?.string ?? "").shortened(to: limit) }
}

/// Returns the number and the noun in the singular or plural: "1 login", "2 logins".
func counted(_ count: Int, _ noun: String) -> String { count == 1 ? "1 \(noun)" : "\(count) \(noun)s" }
