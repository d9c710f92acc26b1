import ArgumentParser
import Glibc
import Testing
import WatchwordProtocol

@testable import watchword

/// The quick parser and the full parser read the same options.
@Suite struct CommonOptionsParserTests {
    private static let url = "https://h.example/a/report.csv?x=1"

    @Test(arguments: [
        [url], ["-s", url], [url, "--silent"], ["-sS", url], ["-s", "-S", url], ["-f", url], ["--fail", "-L", url],
        ["-L", "-L", url], ["--location", url], ["-o", "out", url], [url, "--output", "a b"], ["--no-start", url],
        ["--socket", "/run/x.sock", url, "-f", "-s"],
    ])
    func theQuickParserAgreesWithTheFullParser(arguments: [String]) throws {
        let quick = try #require(CommonOptionsParser(["fetch"] + arguments))
        let command = try #require(try WatchwordCommand.parseAsRoot(["fetch"] + arguments) as? FetchSubcommand)
        let targets = try command.targets()
        let requests = try command.body.requests(for: targets.map(\.url), arguments: targets.map(\.argument))
        let items = try command.items(targets, requests, interrupt: -1)
        let item = try #require(items.first)
        #expect(items.count == 1 && String(reflecting: quick.item) == String(reflecting: item))
        #expect(quick.item.params == item.params)
        #expect(quick.silent == command.pace.silent && quick.showError == command.pace.showError)
        #expect(quick.socket == command.broker.socket.socket && quick.noStart == command.broker.noStart)
        let rest = FetchBatch(items: [], location: command.broker.socket.location, mayStart: true, showsProgress: false)
        #expect(rest.storage == command.login.keep && rest.isInsecure == command.tls.insecure)
        #expect(rest.isVerbose == command.verbose && rest.isBarOnly == command.pace.progressBar)
        #expect(!command.pace.parallel)
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
    func otherArgumentsAreLeftToTheFullParser(arguments: [String]) { #expect(CommonOptionsParser(arguments) == nil) }

    /// Arguments without secrets are not changed.
    @Test(arguments: [
        ["fetch", "https://h/"], ["fetch", "-sS", "-L", "-o", "a b", "--socket", "/x", "https://h/"], ["status"], [],
        ["fetch", "--no-start", "http://h/#a"], ["credentials", "list"], ["fetch", "-o", "-s", "x:y"],
    ])
    func anArgumentListWithoutSecretsIsUnchanged(arguments: [String]) {
        withArguments(arguments) { pointers in
            #expect(CommonOptionsParser.withoutSecrets(pointers) == arguments)
            let bytes = pointers.compactMap { $0.map { UnsafeMutableRawBufferPointer(start: $0, count: strlen($0)) } }
            let (texts, taken) = SecretArguments.take(from: bytes)
            #expect(texts == arguments && taken.isEmpty)
            #expect(bytes.map { String(decoding: $0, as: UTF8.self) } == arguments)
        }
    }

    @Test(arguments: [
        ["fetch", "-u", "bob:pw", "https://h/"], ["fetch", "-ubob:pw", "https://h/"], ["fetch", "https://bob:pw@h/"],
        ["fetch", "https://h/?token=1"], ["fetch", "bob:pw@h"], ["fetch", "--pass", "x", "https://h/"],
        ["fetch", "-sd", "x", "https://h/"], ["fetch", "--oauth2-bearer=x", "https://h/"],
        ["fetch", "--socket", "http://a:b@c/", "https://h/"], ["fetch", "--json", "{}", "https://h/"],
        ["fetch", "--", "a"],
        ["askpass", "Password for 'https://bob@h':"], ["fetch", "-", "x"],
        ["credentials", "store", "--user", "x", "h"],
    ])
    func everyOtherIsSearchedForSecrets(arguments: [String]) {
        withArguments(arguments) { #expect(CommonOptionsParser.withoutSecrets($0) == nil) }
    }

    private func withArguments(
        _ arguments: [String], _ body: (UnsafeBufferPointer<UnsafeMutablePointer<CChar>?>) -> Void
    ) {
        let pointers = arguments.map { strdup($0) }
        defer { for pointer in pointers { free(pointer) } }
        pointers.withUnsafeBufferPointer(body)
    }
}
