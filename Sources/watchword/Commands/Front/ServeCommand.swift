import ArgumentParser
import CPlatform
import JSONText
import WatchwordClient
import WatchwordProtocol

struct ServeCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        "serve", "Serve sites to local programs by plain HTTP; the broker logs in to the sites.",
        """
        Prints the URL by which programs reach each site, and serves it until it is interrupted. Other users have no access, \
        nor have web pages. With --restricted, for a container or a sandbox, each request is recorded in the audit log, and \
        a login that the program sends itself is dropped. The program receives responses, but never a password or a token.
        """,
        examples: "watchword serve https://intranet.example",
        "watchword serve --restricted --method GET --path /api/ --budget 1000 --listen $XDG_RUNTIME_DIR/api.sock https://api.example",
        "watchword serve --restricted --listen $XDG_RUNTIME_DIR/sites/ https://api.example https://files.example")

    @Option(
        help: ArgumentHelp(
            """
            Listen here: 127.0.0.1:PORT, [::1]:PORT, the path of a Unix socket, or a folder with a slash at its end, for a socket \
            HOST.sock of each site. By default, on a free port for each.
            """, valueName: "address"))
    var listen: String?

    @Flag(help: "For programs that must not log in themselves: record each request, and drop their own logins.")
    var restricted = false

    @Flag(
        help:
            "With --restricted: let an agent ask you before a stored login is used. Otherwise starting this is your consent."
    )
    var ask = false

    @Option(
        name: .customLong("method"), help: ArgumentHelp("Allow only this method; can be repeated.", valueName: "method")
    )
    var methods: [String] = []

    @Option(
        name: .customLong("path"),
        help: ArgumentHelp(
            "Allow only this path, or all below it if it ends with a slash; can be repeated.", valueName: "path"))
    var paths: [String] = []

    @Option(
        name: .customLong("field"),
        help: ArgumentHelp(
            """
            With --restricted, --method or --path, only usual request fields are passed on, because servers take methods and paths \
            from others: pass this field on, too; can be repeated.
            """, valueName: "name"))
    var fields: [String] = []

    @Option(help: ArgumentHelp("Refuse further requests to a site after this number.", valueName: "requests"))
    var budget: Int?

    @OptionGroup var broker: BrokerStartOptions

    @Argument(help: ArgumentHelp("The URL of a site, without a path; can be repeated.", valueName: "url"))
    var urls: [String]

    private struct Place {
        let url: String
        let address: FrontAddress
    }

    func validate() throws {
        guard !urls.isEmpty else { throw ValidationError("Missing expected argument '<url>'") }
        _ = try places()
        guard !ask || restricted else { throw ValidationError("--ask needs --restricted") }
        if let budget, !(1...FrontSite.largestBudget).contains(budget) {
            throw ValidationError("--budget must be between 1 and \(FrontSite.largestBudget)")
        }
    }

    func run() throws {
        let places = try places()
        do throws(ClientFailure) {
            let connection = try broker.connect()
            connection.callLimit = Patience.withTheBroker
            connection.interruptDescriptor = watchword_interrupt_descriptor()
            for place in places {
                let front = try connection.call(FrontOpen(.site(site(place.url)), at: place.address))
                let listening = front["listen"]?.string ?? ""
                let text = listening.hasPrefix("/") ? "the socket \(listening)" : "http://\(listening)"
                print("Serving \(place.url) at \(text)")
                // Cookies do not distinguish the ports of one address.
                if let name = front["name"]?.string { print("For browsers, and with cookies: http://\(name)") }
            }
            if ask, try connection.call(ServerStatus())["agents"]?.elements?.isEmpty != false {
                printError(
                    "no agent is running, so no stored login is used; start watchword-agent or \"watchword agent\"")
            }
            print("Press Ctrl-C to stop.")
            connection.callLimit = nil
            try connection.wait { false }
        } catch {
            if case .interrupted = error { return }
            throw reportRefusal(error)
        }
    }

    private func site(_ url: String) -> FrontSite {
        var site = FrontSite(
            url: url, isRestricted: restricted, methods: methods.isEmpty ? nil : methods,
            paths: paths.isEmpty ? nil : paths, budget: budget)
        site.asksConsent = ask
        site.fields = fields.isEmpty ? nil : fields
        return site
    }

    /// Returns the addresses at which the sites are served.
    private func places() throws -> [Place] {
        guard let listen else { return urls.map { Place(url: $0, address: .ipv4(port: 0)) } }
        guard listen.hasSuffix("/") else {
            guard urls.count == 1 else {
                throw ValidationError(
                    "--listen: several sites need a folder with a slash at its end; or omit --listen for free ports")
            }
            return [Place(url: urls[0], address: try address(listen))]
        }
        let places = try urls.map { url in
            let site = try Site(url).pattern
            let host = site.host.string.filter { !"[]".contains($0) }
            return Place(url: url, address: try address("\(listen)\(host).sock"))
        }
        guard Set(places.map(\.address)).count == places.count else {
            throw ValidationError("--listen: two of the sites have the same host, and would have the same socket")
        }
        return places
    }

    private func address(_ text: String) throws -> FrontAddress {
        do throws(Refusal) { return try FrontAddress(text) } catch {
            throw ValidationError("--listen: \(error.text)")
        }
    }
}
