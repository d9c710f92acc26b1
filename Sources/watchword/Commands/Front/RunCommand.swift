import ArgumentParser
import CPlatform
import Glibc
import JSONText
import WatchwordClient
import WatchwordProtocol

struct RunCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "run",
        abstract: "Run a program whose HTTP requests go through the broker, which logs in for it.",
        discussion: """
            The program uses the broker as its proxy: its environment contains http_proxy, https_proxy and the like. The proxy \
            exists as long as the program runs, and serves only this program and its descendants. The broker logs in to the \
            upstream proxy of its configuration, and to http servers. Exit code and signals are those of the program; 127 means \
            that it was not found, 126 that it cannot be run.

            Examples:
              watchword run -- pip download requests
              watchword run -- git clone https://git.example/project
            """)

    @OptionGroup var broker: BrokerStartOptions

    @Argument(parsing: .captureForPassthrough, help: "The program and its arguments.")
    var command: [String]

    func run() throws {
        var command = command
        if ["--help", "-h"].contains(command.first) { throw CleanExit.helpRequest(Self.self) }
        if command.first == "--" { command.removeFirst() }
        guard let program = command.first else {
            throw ValidationError("missing program; write: watchword run -- PROGRAM")
        }
        let environment: [String]
        // The front is open as long as the connection.
        let connection: BrokerConnection
        do throws(ClientFailure) {
            connection = try broker.connect()
            connection.callLimit = Patience.withTheBroker
            let front = try connection.call(FrontOpen(.proxy))
            guard let listen = front["listen"]?.string, let token = front["token"]?.string else {
                throw ClientFailure.protocolViolation("front/open")
            }
            environment = ProxyEnvironment.added(to: Self.current, proxy: "http://watchword:\(token)@\(listen)", listen)
        } catch {
            throw reportRefusal(error)
        }
        var status: Int32 = 0
        let error = Self.withPointers(command) { arguments in
            Self.withPointers(environment) { watchword_run_and_wait(arguments, $0, &status) }
        }
        guard error == 0 else {
            printError("cannot run \(program): \(String(cString: strerror(error)))")
            throw ExitCode(error == ENOENT ? 127 : 126)
        }
        withExtendedLifetime(connection) {}
        watchword_end_like(status)
    }

    private static var current: [String] {
        var entries: [String] = []
        var next = environ
        while let entry = next.pointee {
            entries.append(String(cString: entry))
            next += 1
        }
        return entries
    }

    private static func withPointers<Result>(
        _ texts: [String], _ body: (UnsafePointer<UnsafeMutablePointer<CChar>?>) -> Result
    ) -> Result {
        var pointers = texts.map { strdup($0) } + [nil]
        defer { for pointer in pointers { free(pointer) } }
        return pointers.withUnsafeMutableBufferPointer { body(UnsafePointer($0.baseAddress!)) }
    }
}
