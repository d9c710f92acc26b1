import ArgumentParser
import CPlatform

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

            Other users can read the arguments of a program (ps). Values that may be secret are overwritten there when \
            this one starts: those of -u, -U, -x, -E, --key, --pass, --oauth2-bearer, -H, -d and its like, -F, and in URLs \
            user, password and query. Until then, for some milliseconds, they can be read, and shells keep them in their \
            history. Better are a question at the terminal, -H @file, -d @file, -d @- and: watchword credentials store \
            --password-stdin.

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
        try FetchRun(
            items: items, location: broker.socket.location, mayStart: !broker.noStart,
            showsProgress: options.showsProgress(items), keep: options.login.keep, isInsecure: options.tls.insecure,
            isBarOnly: options.pace.progressBar, isVerbose: options.verbose,
            atOnce: options.pace.parallel ? options.pace.parallelMax : 1
        ).run(interrupt: interrupt)
    }
}
