import ArgumentParser
import Testing
import WatchwordProtocol

@testable import watchword

/// What is read quickly is what the parser would have read.
@Suite struct QuickFetchTests {
    private static let url = "https://h.example/a/report.csv?x=1"

    @Test(arguments: [
        [url], ["-s", url], [url, "--silent"], ["-sS", url], ["-s", "-S", url], ["-f", url], ["--fail", "-L", url],
        ["-L", "-L", url], ["--location", url], ["-o", "out", url], [url, "--output", "a b"], ["--no-start", url],
        ["--socket", "/run/x.sock", url, "-f", "-s"],
    ])
    func itIsAsTheParserReadsIt(arguments: [String]) throws {
        let quick = try #require(QuickFetch(["fetch"] + arguments))
        let command = try #require(try WatchwordCommand.parseAsRoot(["fetch"] + arguments) as? FetchCommand)
        let options = command.options
        let targets = try options.targets()
        let requests = try options.body.requests(for: targets.map(\.url), arguments: targets.map(\.argument))
        let items = try options.items(targets, requests, interrupt: -1)
        let item = try #require(items.first)
        #expect(items.count == 1 && String(reflecting: quick.item) == String(reflecting: item))
        #expect(quick.item.params == item.params)
        #expect(quick.silent == options.pace.silent && quick.showError == options.pace.showError)
        #expect(quick.socket == command.broker.socket.socket && quick.noStart == command.broker.noStart)
        let rest = FetchRun(items: [], location: command.broker.socket.location, mayStart: true, showsProgress: false)
        #expect(rest.keep == options.login.keep && rest.isInsecure == options.tls.insecure)
        #expect(rest.isVerbose == options.verbose && rest.isBarOnly == options.pace.progressBar)
        #expect(!options.pace.parallel)
    }

    @Test(arguments: [
        [], ["fetch"], ["fetch", "-s"], ["status"], ["fetch", url, url], ["fetch", "--", url],
        ["fetch", "-x", "h", url],
        ["fetch", "-o"], ["fetch", url, "-o"], ["fetch", "-o", "-", url], ["fetch", "-o", "-s", url],
        ["fetch", "-o", "", url],
        ["fetch", "-o", "a", "-o", "b", url], ["fetch", "--output=x", url], ["fetch", "-fL", url], ["fetch", "--help"],
        ["fetch", "h.example"], ["fetch", "https://h/{a,b}"], ["fetch", "https://h/[1-2]"], ["fetch", "https://h/a b"],
        ["fetch", "ftp://h/"],
        ["fetch", ""], ["--version"], ["fetch", "--socket", url], ["help", "fetch"], ["fetch", "--json", url],
    ])
    func everythingElseIsTheParsers(arguments: [String]) { #expect(QuickFetch(arguments) == nil) }
}
