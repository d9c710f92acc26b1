import Testing

@testable import watchword

@Suite struct SubcommandSuggestionTests {
    @Test(
        "A mistyped subcommand is reported with the most similar one",
        arguments: [
            ("ftech http://h/", #""ftech" is not a command of watchword; did you mean "fetch"?"#),
            ("credentials lsit", #""lsit" is not a command of watchword credentials; did you mean "list"?"#),
            ("statsu", #""statsu" is not a command of watchword; did you mean "status"?"#),
            ("entirely-else", #""entirely-else" is not a command of watchword; see watchword --help"#),
        ])
    func mistyped(line: String, text: String) {
        #expect(SubcommandSuggestion.text(line.split(separator: " ").map(String.init)) == text)
    }

    @Test(
        "Options, help and known subcommands cause no suggestion",
        arguments: ["", "--bad", "help ftech", "status x", "credentials list"])
    func known(line: String) {
        #expect(SubcommandSuggestion.text(line.split(separator: " ").map(String.init)) == nil)
    }
}
