import ArgumentParser
import CPlatform
import Glibc
import JSONText
import WatchwordClient
import WatchwordProtocol

struct RunCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        "run", "Run a program whose HTTP requests go through the broker, which logs in for it.",
        """
        The program uses the broker as its proxy: its environment contains http_proxy, https_proxy and the like. The proxy \
        exists as long as the program runs, and serves only this program and its descendants. The broker logs in to the \
        upstream proxy of its configuration, and to http servers. If the broker ends, the requests of the program fail, and if another \
        program takes the address of the proxy then, the program is killed. Exit code and signals are those of the program; 127 means \
        that it was not found, 126 that it cannot be run.
        """,
        examples: "watchword run -- pip download requests", "watchword run -- git clone https://git.example/project")

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
        let port: UInt16
        // The front is open as long as the connection.
        let connection: BrokerConnection
        do throws(ClientFailure) {
            connection = try broker.connect()
            connection.callLimit = Patience.withTheBroker
            let front = try connection.call(FrontOpen(.proxy))
            guard let listen = front["listen"]?.string, let token = front["token"]?.string else {
                throw ClientFailure.protocolViolation("front/open")
            }
            port = (try? FrontAddress(listen))?.port.flatMap { UInt16(exactly: $0) } ?? 0
            try Self.reportProblems(connection)
            environment = ProxyEnvironment.added(to: Self.current, proxy: "http://watchword:\(token)@\(listen)", listen)
        } catch {
            throw reportRefusal(error)
        }
        var status: Int32 = 0
        let lines = [
            "watchword: the broker has ended; the requests of \(program) fail from now on. Run it again\n",
            "watchword: the broker has ended, and another program has the address of its proxy; \(program) was killed. Run it again\n",
        ]
        let error = Self.withPointers(lines) { lines in
            var broker = watchword_broker(
                connection: connection.descriptor, port: port, has_ended: lines[0], has_been_replaced: lines[1])
            return Self.withPointers(command) { arguments in
                Self.withPointers(environment) { watchword_run_and_wait(arguments, $0, &broker, &status) }
            }
        }
        guard error == 0 else {
            throw ExitCode(
                error == ENOENT ? 127 : 126, printing: "cannot run \(program): \(String(cString: strerror(error)))")
        }
        withExtendedLifetime(connection) {}
        watchword_end_like(status)
    }

    /// Reports the fronts of the configuration that do not listen: another program may receive what programs send there.
    private static func reportProblems(_ connection: BrokerConnection) throws(ClientFailure) {
        let fronts = try connection.call(FrontList())["fronts"]?.elements ?? []
        for problem in fronts.compactMap({ $0["problem"]?.string }) {
            printError("warning: a front of the configuration is missing: \(problem.shortened(to: 300))")
        }
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

/// The environment variables by which programs find a proxy.
enum ProxyEnvironment {
    /// The variables that most programs read, in both spellings: some read only one.
    private static let names = ["http_proxy", "https_proxy", "all_proxy"]

    /// Returns an environment whose programs use a proxy. The other variables, such as `no_proxy`, do not change.
    /// - Parameters:
    ///   - environment: entries of the form `NAME=VALUE`.
    ///   - proxy: the URL of the proxy, with its token.
    ///   - listen: the address of the proxy, `HOST:PORT`.
    static func added(to environment: [String], proxy: String, _ listen: String) -> [String] {
        var added = names.flatMap { [($0, proxy), (uppercased($0), proxy)] }
        // Node's own fetch reads the variables only if it is told to.
        added.append(("NODE_USE_ENV_PROXY", "1"))
        // Java reads none of them. It cannot send the token, but the broker recognizes descendants without it.
        let java = "JAVA_TOOL_OPTIONS"
        let options = environment.first { $0.hasPrefix("\(java)=") }.map {
            String($0.dropFirst(java.utf8.count + 1)) + " "
        }
        let (host, port) = split(listen)
        let properties = ["http", "https"].map { "-D\($0).proxyHost=\(host) -D\($0).proxyPort=\(port)" }
        added.append((java, (options ?? "") + properties.joined(separator: " ")))
        let replaced = Set(added.map(\.0))
        return environment.filter { !replaced.contains(String($0.prefix { $0 != "=" })) } + added.map { "\($0)=\($1)" }
    }

    private static func uppercased(_ name: String) -> String {
        String(decoding: name.utf8.map { (0x61...0x7A).contains($0) ? $0 - 0x20 : $0 }, as: UTF8.self)
    }

    private static func split(_ address: String) -> (host: Substring, port: Substring) {
        let colon = address.lastIndex(of: ":") ?? address.endIndex
        return (address[..<colon], address[colon...].dropFirst())
    }
}
