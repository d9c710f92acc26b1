internal import WatchwordCore
internal import WatchwordProtocol

extension CredentialCommand {
    /// Parses a text such as "git.example.com bob /usr/bin/pass show work/git".
    init(_ text: String) throws(Refusal) {
        let words = text.split(whereSeparator: { $0 == " " || $0 == "\t" }).map(String.init)
        guard words.count > 2 else { throw Refusal("host pattern, user or command missing; \(Self.form)") }
        let hosts: HostPattern
        do throws(HostPattern.Invalid) {
            hosts = try HostPattern(words[0])
        } catch {
            throw Refusal(error.text)
        }
        let arguments = Array(words[2...])
        guard arguments[0].hasPrefix("/") else {
            throw Refusal("\"\(arguments[0].shortened)\" is not an absolute path; \(Self.form)")
        }
        // These characters are meant for a shell; passed as they are, they would change the arguments.
        let isForShell = arguments.contains { $0.contains { "\"'`$|;&<>\\\0".contains($0) } }
        guard !isForShell else {  // guard: command-without-a-shell
            throw Refusal("quotes and shell characters are not supported; put the command into a script")
        }
        self.init(hosts: hosts, user: ExactText(words[1]), arguments: arguments)
    }

    private static let form =
        "write a host pattern, a user and a command, for example \"git.example.com bob /usr/bin/pass show work/git\""

    /// The command as it is written in the file.
    var text: String { ([hosts.description, user.string] + arguments).joined(separator: " ") }
}
