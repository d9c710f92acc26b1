import ArgumentParser
import CPlatform

struct FetchCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "fetch", abstract: "Fetch a URL; ask at the terminal when a server or a proxy wants a log-in.",
        discussion:
            """
            Also asked is what to do about a certificate that is not trusted, and for a client certificate. Without a \
            terminal an agent of the desktop is asked for log-ins, where there is one. Exit codes are curl's: 0 for any \
            response, 2 for a wrong command line, 6, 7, 28 and so on for what went wrong, 58 for a client certificate, 60 \
            for a server that is not trusted, 67 for no log-in, 90 for another key than the pinned one, 97 for a proxy. 67 \
            is also the code for a response of status 401 or 407 to a command that names a user, a token or a scheme.

            The options are curl's. Those that change nothing here are ignored, with a note that -s silences; those that \
            would change whom to trust or what is sent are refused. watchword-curl(7) lists each, and every difference.

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
        if options.pace.silent { StandardError.beWithoutNotes() }
        try options.files.redirectErrors()
        if options.pace.silent && !options.pace.showError { StandardError.beSilent() }
        for note in CurlArguments.current?.notes ?? [] { StandardError.note(note) }
        let targets = try options.targets()
        // Still without a hold on signals: reading can wait, for a person or for another program.
        let requests = try options.body.requests(for: targets.map(\.url), arguments: targets.map(\.argument))
        let interrupt = watchword_interrupt_descriptor()
        let items = try options.items(targets, requests, interrupt: interrupt)
        try FetchRun(
            items: items, location: broker.socket.location, mayStart: !broker.noStart,
            showsProgress: options.showsProgress(items), keep: options.login.keep, isInsecure: options.tls.insecure,
            isBarOnly: options.pace.progressBar, isVerbose: options.verbose,
            atOnce: options.pace.parallel ? options.pace.parallelMax : 1, endsEarly: options.failEarly
        ).run(interrupt: interrupt)
    }
}
