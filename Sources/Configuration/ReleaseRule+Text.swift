internal import WatchwordCore
internal import WatchwordProtocol

extension ReleaseRule {
    /// Parses a text such as "/usr/bin/watchword git.example.com *.corp.example".
    init(_ text: String) throws(Refusal) {
        let words = text.split(whereSeparator: { $0 == " " || $0 == "\t" }).map(String.init)
        guard let first = words.first else { throw Refusal("empty string; \(Self.form)") }
        guard first.hasPrefix("/") else {
            throw Refusal("\"\(first.shortened)\" is not an absolute path; \(Self.form)")
        }
        guard words.count > 1 else {
            throw Refusal("missing host pattern after the program; \(Self.form)")
        }
        var hosts: [HostPattern] = []
        for word in words.dropFirst() {
            do throws(HostPattern.Invalid) {
                hosts.append(try HostPattern(word))
            } catch {
                throw Refusal(error.text)
            }
        }
        self.init(program: first, hosts: hosts)
    }

    private static let form =
        "write the path of a program and host patterns, for example \"/usr/bin/watchword git.example.com\""

    /// The rule as it is written in the file.
    var text: String { ([program] + hosts.map(\.description)).joined(separator: " ") }
}
