import ArgumentParser
import CPlatform
import JSONText
import WatchwordClient
import WatchwordProtocol

struct ServeCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "serve",
        abstract: "Serve a site to local programs by plain HTTP; the broker logs in to the site.",
        discussion: """
            Prints the URL by which programs reach the site, and serves it until it is interrupted. Other users have no access, \
            nor have web pages. With --restricted, for a container or a sandbox, each request is recorded in the audit log, and \
            a login that the program sends itself is dropped. The program receives responses, but never a password or a token.

            Examples:
              watchword serve https://intranet.example
              watchword serve --restricted --method GET --path /api/ --budget 1000 --listen $XDG_RUNTIME_DIR/api.sock https://api.example
            """)

    @Option(
        help: ArgumentHelp(
            "Listen here: 127.0.0.1:PORT, [::1]:PORT or the path of a Unix socket. By default, on a free port.",
            valueName: "address"))
    var listen: String?

    @Flag(help: "For programs that must not log in themselves: record each request, and drop their own logins.")
    var restricted = false

    @Option(
        name: .customLong("method"), help: ArgumentHelp("Allow only this method; can be repeated.", valueName: "method")
    )
    var methods: [String] = []

    @Option(
        name: .customLong("path"),
        help: ArgumentHelp(
            "Allow only this path, or all below it if it ends with a slash; can be repeated.", valueName: "path"))
    var paths: [String] = []

    @Option(help: ArgumentHelp("Refuse further requests after this number.", valueName: "requests"))
    var budget: Int?

    @OptionGroup var broker: BrokerStartOptions

    @Argument(help: "The URL of the site, without a path.")
    var url: String

    func validate() throws {
        if let listen {
            do throws(FrontAddress.Invalid) { _ = try FrontAddress(listen) } catch {
                throw ValidationError("--listen: \(error.text)")
            }
        }
        if let budget, !(1...FrontSite.largestBudget).contains(budget) {
            throw ValidationError("--budget must be between 1 and \(FrontSite.largestBudget)")
        }
    }

    func run() throws {
        let site = FrontSite(
            url: url, isRestricted: restricted, methods: methods.isEmpty ? nil : methods,
            paths: paths.isEmpty ? nil : paths, budget: budget)
        do throws(ClientFailure) {
            let connection = try broker.connect()
            connection.callLimit = Patience.withTheBroker
            connection.interruptDescriptor = watchword_interrupt_descriptor()
            let front = try connection.call(FrontOpen(.site(site), at: address))
            let listening = front["listen"]?.string ?? ""
            print(
                listening.hasPrefix("/")
                    ? "Serving \(url) at the socket \(listening)" : "Serving \(url) at http://\(listening)")
            print("Press Ctrl-C to stop.")
            connection.callLimit = nil
            try connection.wait { false }
        } catch {
            if case .interrupted = error { return }
            throw reportRefusal(error)
        }
    }

    private var address: FrontAddress { listen.flatMap { try? FrontAddress($0) } ?? .ipv4(port: 0) }
}
