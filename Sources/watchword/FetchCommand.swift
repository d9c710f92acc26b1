import ArgumentParser
import CPlatform
import WatchwordClient
import WatchwordProtocol

struct FetchCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "fetch", abstract: "Fetch a URL; ask at the terminal when a server or a proxy wants a log-in.",
        discussion:
            """
            Also asked is what to do about a certificate that is not trusted, and for a client certificate. Without a \
            terminal an agent of the desktop is asked for log-ins, where there is one. Exit codes are curl's: 0 for any \
            response, 6, 7, 28 and so on for what went wrong, 58 for a client certificate, 60 for a server that is not \
            trusted, 67 for no log-in, 90 for another key than the pinned one, 97 for a proxy. 67 is also the code for a \
            response of status 401 or 407 to a command that names a user, a token or a scheme.

            Examples:
              watchword fetch https://intranet.example/report
              watchword fetch -Z -O https://intranet.example/a.iso -O https://intranet.example/b.iso
              watchword fetch -F name=value -F file=@report.pdf https://intranet.example/upload
              watchword fetch -L --keep keyring https://intranet.example/report
              watchword fetch -x socks5h://gate.example https://intranet.example/report
              watchword fetch --cert me.pem --key me.key https://intranet.example/report
            """)

    @OptionGroup var options: FetchOptions
    @OptionGroup var broker: BrokerOptions

    func run() throws {
        if options.pace.silent && !options.pace.showError { StandardError.beSilent() }
        // Still without a hold on signals: reading can wait, for a person or for another program.
        let requests = try options.body.requests(for: options.urls)
        let interrupt = watchword_interrupt_descriptor()
        let items = try options.items(requests, interrupt: interrupt)
        var code = ExitCode.success
        do {
            let connection = try broker.connect()
            connection.interruptDescriptor = interrupt
            try connection.initialize(name: "watchword", version: WatchwordVersion.current, delivery: .request)
            let (login, tls) = (options.login, options.tls)
            let session = FetchSession(
                items, on: connection, atOnce: options.pace.parallel ? options.pace.parallelMax : 1,
                showsProgress: options.showsProgress(items), isBarOnly: options.pace.progressBar
            ) { item in
                TerminalQuestion(item.params, keep: login.keep, isInsecure: tls.insecure, interrupt: interrupt)
            }
            code = try session.run(isVerbose: options.verbose)
        } catch let failure as ClientFailure {
            throw report(failure)
        }
        if code != .success { throw code }
    }
}
