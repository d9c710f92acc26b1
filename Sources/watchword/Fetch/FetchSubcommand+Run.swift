import ArgumentParser
import CPlatform

extension FetchSubcommand {
    static let configuration = CommandConfiguration(
        commandName: "fetch", abstract: "Fetch a URL; ask at the terminal when a server or proxy requires a login.",
        discussion:
            """
            Also asks about untrusted server certificates and for client certificates. Without a terminal, the desktop \
            agent asks, if one is running. Exit codes are curl's: 0 for any response, 2 for an invalid command line, 6 for \
            an unknown host, 7 for a failed connection, 28 for a timeout, 58 for a client certificate, 60 for an untrusted \
            server, 67 for a missing login, 90 for a key other than the pinned one, 97 for a proxy, and 120, which curl does \
            not use, for a login that is not in the keyring in spite of --keep keyring. The code is also 67 if the response \
            has status 401 or 407 and the command selects a user, a token or a scheme.

            The options are curl's. Options that have no effect here are ignored, with a note that -s suppresses; options \
            that would change which servers are trusted or which data is sent are refused. watchword-curl(7) lists all options \
            and differences.

            Other users can read the arguments of a program (ps). Arguments that may be secret are overwritten at startup: \
            the values of -u, -U, -x, -E, --key, --pass, --oauth2-bearer, -H, -b, -F, -d and its variants, and the user, \
            password and query of URLs. Until then they are readable for some milliseconds, and shells store them in their \
            history. Safer alternatives are the prompt at the terminal, -H @file, -d @file, -d @-, and the command \
            watchword credentials store --password-stdin.

            Examples:
              watchword fetch https://intranet.example/report
              watchword fetch -Z -O https://intranet.example/a.iso -O https://intranet.example/b.iso
              watchword fetch -F name=value -F file=@report.pdf https://intranet.example/upload
              watchword fetch -L --keep keyring https://intranet.example/report
              watchword fetch -x socks5h://gate.example https://intranet.example/report
              watchword fetch --cert me.pem --key me.key https://intranet.example/report
            """)

    func run() throws {
        if pace.silent { StandardError.beWithoutNotes() }
        try files.redirectErrors()
        if pace.silent && !pace.showError { StandardError.beSilent() }
        for note in CurlArguments.current?.notes ?? [] { StandardError.note(note) }
        let targets = try targets()
        // Reading the bodies may block on a terminal or a pipe, so signals are intercepted only afterwards.
        let requests = try body.requests(for: targets.map(\.url), arguments: targets.map(\.argument))
        let interrupt = watchword_interrupt_descriptor()
        let items = try items(targets, requests, interrupt: interrupt)
        try FetchBatch(
            items: items, location: broker.socket.location, mayStart: !broker.noStart,
            showsProgress: showsProgress(items), storage: login.keep, isInsecure: tls.insecure,
            isBarOnly: pace.progressBar, isVerbose: verbose,
            maxConcurrent: pace.parallel ? pace.parallelMax : 1, endsEarly: failEarly
        ).run(interrupt: interrupt)
    }
}
