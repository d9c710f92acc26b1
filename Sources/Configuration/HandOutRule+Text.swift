internal import WatchwordProtocol

extension HandOutRule {
    /// Reads "/usr/bin/watchword git.example.com *.corp.example".
    init(_ text: String) throws(Refusal) {
        let words = text.split(whereSeparator: { $0 == " " || $0 == "\t" }).map(String.init)
        guard let first = words.first else { throw Refusal("This is empty. \(Self.form)") }
        guard first.hasPrefix("/") else {
            throw Refusal("\"\(first.shortened)\" is not a path from \"/\" on. \(Self.form)")
        }
        guard words.count > 1 else {
            throw Refusal("Behind the program there is no host pattern, and it would be given nothing. \(Self.form)")
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
        "Write a program file and host patterns, for example \"/usr/bin/watchword git.example.com\"."

    /// As it is written in the file.
    var text: String { ([program] + hosts.map(\.description)).joined(separator: " ") }
}

extension ConfigurationOption {
    static func handOuts(_ key: String, _ place: Place<[HandOutRule]>, _ summary: String) -> ConfigurationOption {
        ConfigurationOption(
            key, .handOuts, summary,
            written: { "[\($0[keyPath: place].map { "\"\($0.text)\"" }.joined(separator: ", "))]" },
            change: { option, value, settings in
                guard case .strings(let texts) = value else { return [option.wrongType(value)] }
                var (handOuts, objections): ([HandOutRule], [Objection]) = ([], [])
                for text in texts {
                    do throws(Refusal) {
                        handOuts.append(try HandOutRule(text.text))
                    } catch {
                        objections.append(Objection(line: text.line, text: error.text))
                    }
                }
                if objections.isEmpty { settings[keyPath: place] = handOuts }
                return objections
            })
    }
}
