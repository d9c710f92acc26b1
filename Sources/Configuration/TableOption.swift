internal import WatchwordCore
internal import WatchwordProtocol

/// What the options of one kind of table change: the settings, or the value that one table of several describes.
protocol TableTarget: Sendable {
    /// All options, in the order of the manual page.
    static var options: [TableOption<Self>] { get }

    /// The defaults.
    init()
}

/// An option, by which the file is parsed and problems are explained. A test compares watchword-config(5) with it.
struct TableOption<Target: TableTarget>: Sendable {
    typealias Place<Value> = any WritableKeyPath<Target, Value> & Sendable
    typealias Change = @Sendable (_ option: Self, _ value: TOMLValue, _ target: inout Target) throws -> Void

    /// The name. That of an option of the settings begins with its table and a dot.
    let key: String
    let type: ValueType
    /// Returns the value in a target as it is written in the file; `nil` if the option is not set.
    let written: @Sendable (_ target: Target) -> String?
    private let change: Change

    init(_ key: String, _ type: ValueType, written: @escaping @Sendable (Target) -> String?, change: @escaping Change) {
        (self.key, self.type, self.written, self.change) = (key, type, written, change)
    }

    /// - Parameter read: converts a value. Throws `Refusal` or `ValueProblems`.
    init<Value: Sendable>(
        _ key: String, _ type: ValueType, _ place: Place<Value>, written: @escaping @Sendable (Value) -> String?,
        read: @escaping @Sendable (_ option: Self, _ value: TOMLValue) throws -> Value
    ) {
        self.init(
            key, type, written: { written($0[keyPath: place]) }, change: { $2[keyPath: place] = try read($0, $1) })
    }

    /// Applies a value, or returns all its problems.
    func apply(_ value: TOMLValue, to target: inout Target) -> [ValueProblem] {
        do {
            try change(self, value, &target)
            return []
        } catch let problems as ValueProblems {
            return problems.all
        } catch {
            return [ValueProblem(text: (error as? Refusal)?.text ?? "\(error)")]
        }
    }

    /// The default as it would be written in the file; `nil` if the option is not set by default.
    var defaultText: String? { written(Target()) }

    /// The key without the table.
    var name: String { key.split(separator: ".").last.map(String.init) ?? key }

    /// The problem of a value that is not valid, and that messages do not quote.
    var invalid: Refusal { Refusal("expected \(type.text); \(advice)") }

    /// The problem of a value that is not valid; `found` describes it.
    func unexpected(_ found: String) -> Refusal { Refusal("expected \(type.text), found \(found); \(advice)") }

    /// An empty list, which is not valid everywhere, shows nothing.
    private var advice: String {
        let text = defaultText.flatMap { $0 == "[]" ? nil : $0 } ?? type.example
        return "for example, write: \(name) = \(text)"
    }
}

/// A problem of a value.
struct ValueProblem {
    /// The line of the problem; `nil` for the line of the key.
    var line: Int?
    let text: String
}

/// The problems of several elements of a list.
struct ValueProblems: Error {
    let all: [ValueProblem]
}

// MARK: Kinds of values

extension TableOption {
    static func seconds(_ key: String, _ range: ClosedRange<Int64>, _ place: Place<Duration>) -> Self {
        integer(key, .integer(range), place, number: { $0.components.seconds }, value: { .seconds($0) })
    }

    static func milliseconds(_ key: String, _ range: ClosedRange<Int64>, _ place: Place<Duration>) -> Self {
        integer(key, .integer(range), place, number: { Int64($0 / .milliseconds(1)) }, value: { .milliseconds($0) })
    }

    static func count(_ key: String, _ range: ClosedRange<Int64>, _ place: Place<Int>) -> Self {
        integer(key, .integer(range), place, number: { Int64($0) }, value: { Int($0) })
    }

    static func count(_ key: String, _ range: ClosedRange<Int64>, example: Int64, _ place: Place<Int?>) -> Self {
        integer(key, .integer(range, example: example), place, number: { $0.map { Int64($0) } }, value: { Int($0) })
    }

    private static func integer<Value: Sendable>(
        _ key: String, _ type: ValueType, _ place: Place<Value>,
        number: @escaping @Sendable (Value) -> Int64?, value: @escaping @Sendable (Int64) -> Value
    ) -> Self {
        Self(
            key, type, place, written: { number($0).map { "\($0)" } },
            read: { option, found in
                guard case .integer(let number) = found else { throw option.unexpected(found.kindText) }
                guard type.range?.contains(number) == true else { throw option.unexpected("\(number)") }
                return value(number)
            })
    }

    static func boolean(_ key: String, _ place: Place<Bool>) -> Self {
        Self(
            key, .boolean, place, written: { "\($0)" },
            read: { option, value in
                guard case .boolean(let flag) = value else { throw option.unexpected(value.kindText) }
                return flag
            })
    }

    /// A string.
    static func text<Value: Sendable>(
        _ key: String, _ type: ValueType, _ place: Place<Value>, text: @escaping @Sendable (Value) -> String?,
        read: @escaping @Sendable (_ option: Self, _ text: String) throws -> Value
    ) -> Self {
        Self(
            key, type, place, written: { text($0).map { "\"\($0)\"" } },
            read: { option, value in
                guard case .string(let text) = value else { throw option.unexpected(value.kindText) }
                return try read(option, text)
            })
    }

    /// A string that is stored as `read` returns it; `nil` for one that is not valid.
    static func text(
        _ key: String, _ type: ValueType, _ place: Place<String?>,
        read: @escaping @Sendable (_ text: String) throws -> String?
    ) -> Self {
        text(key, type, place, text: \.self) { option, text in
            guard let value = try read(text) else { throw option.invalid }
            return value
        }
    }

    /// One of several strings, or nothing.
    static func choice<Value: CaseIterable & RawRepresentable<String> & Sendable>(
        _ key: String, _ place: Place<Value?>, example: Value
    ) -> Self {
        choice(key, .choice(Value.self, example: example), place, text: { $0?.rawValue }, read: Value.init(rawValue:))
    }

    /// One of several strings.
    static func choice<Value: CaseIterable & RawRepresentable<String> & Sendable>(
        _ key: String, _ place: Place<Value>, example: Value
    ) -> Self {
        choice(key, .choice(Value.self, example: example), place, text: \.rawValue, read: Value.init(rawValue:))
    }

    private static func choice<Value: Sendable>(
        _ key: String, _ type: ValueType, _ place: Place<Value>, text: @escaping @Sendable (Value) -> String?,
        read: @escaping @Sendable (String) -> Value?
    ) -> Self {
        Self.text(key, type, place, text: text) { option, name in
            guard let value = read(name) else { throw option.unexpected("\"\(name.shortened)\"") }
            return value
        }
    }

    static func hosts(_ key: String, _ place: Place<[HostPattern]>, allowsNetworks: Bool = false) -> Self {
        strings(
            key, .hosts, place, texts: { $0.map(\.description) }, list: \.self,
            read: { _, text in
                try HostPattern(text, allowsNetworks: allowsNetworks)
            })
    }

    /// Host patterns; an absent list differs from an empty one.
    static func hosts(_ key: String, _ place: Place<[HostPattern]?>) -> Self {
        strings(
            key, .hosts, place, texts: { $0?.map(\.description) }, list: { $0 },
            read: { _, text in
                try HostPattern(text)
            })
    }

    /// A list of strings, each of which is a rule.
    static func rules<Rule: TextRule>(_ key: String, _ type: ValueType, _ place: Place<[Rule]>) -> Self {
        strings(
            key, type, place, texts: { $0.map(\.text) }, list: \.self,
            read: { earlier, text in
                let rule = try Rule(text)
                guard !earlier.contains(where: rule.excludes) else {
                    throw Refusal("duplicate of an earlier string, \"\(text.shortened)\"; remove one")
                }
                return rule
            })
    }

    /// A list of strings, whose elements are converted one by one.
    static func strings<Element, Value: Sendable>(
        _ key: String, _ type: ValueType, _ place: Place<Value>, texts: @escaping @Sendable (Value) -> [String]?,
        list: @escaping @Sendable ([Element]) -> Value,
        read: @escaping @Sendable (_ earlier: [Element], _ text: String) throws -> Element
    ) -> Self {
        let written = { @Sendable (value: Value) in
            texts(value).map { "[\($0.map { "\"\($0)\"" }.joined(separator: ", "))]" }
        }
        return Self(key, type, place, written: written) { option, value in
            guard case .strings(let texts) = value else { throw option.unexpected(value.kindText) }
            var (elements, problems): ([Element], [ValueProblem]) = ([], [])
            for text in texts {
                do { elements.append(try read(elements, text.text)) } catch {
                    problems.append(ValueProblem(line: text.line, text: (error as? Refusal)?.text ?? "\(error)"))
                }
            }
            guard problems.isEmpty else { throw ValueProblems(all: problems) }
            return list(elements)
        }
    }

    /// A list of tables, which `TableTarget.list` reads.
    static func tables(_ key: String, _ type: ValueType) -> Self {
        Self(
            key, type, written: { _ in nil },
            change: { option, value, _ in
                switch value {
                case .tables: break
                case .strings(let texts) where texts.isEmpty: break
                default: throw option.unexpected(value.kindText)
                }
            })
    }
}

// MARK: Tables

extension TableTarget {
    /// Reads an option, and returns its problems.
    /// - Parameters:
    ///   - written: the name as it is written in the file, with quotation marks if it needs them.
    ///   - table: the path of the table.
    ///   - header: the form of its header.
    mutating func read(
        _ name: String, written: String, _ entry: TOMLEntry, in table: String, header: String
    ) -> [SettingsProblem] {
        if let option = Self.options.first(where: { $0.key == name }) {
            return option.apply(entry.value, to: &self).map { problem in
                SettingsProblem(line: problem.line ?? entry.line, key: "\(table).\(name)", problem.text)
            }
        }
        let names = Self.options.map(\.key)
        let advice =
            SimilarName.nearest(to: name, among: names).map { "did you mean \($0)?" }
            ?? "the options of \(header) are \(names.joined(separator: ", "))"
        let key = "\(table).\(written.shortened)"
        return [SettingsProblem(line: entry.line, key: key, "unknown option; \(advice)")]
    }
}

/// What one table of a list describes (TOML: `[[NAME]]`).
protocol ListedTable: TableTarget {
    /// What is missing, or does not fit together, each with the name of its option.
    var problems: [(option: String, text: String)] { get }
}

extension ListedTable {
    /// Reads the tables of a list in their order. Returns those without problems, and the problems of the others.
    static func list(_ name: String, in entries: [TOMLEntry]) -> (tables: [Self], problems: [SettingsProblem]) {
        var (tables, problems): ([Self], [SettingsProblem]) = ([], [])
        for table in entries where table.depth == 3 && table.path.hasPrefix("\(name)[") && table.path.hasSuffix("]") {
            let prefix = "\(table.path)."
            var (value, found, wrong) = (Self(), [SettingsProblem](), Set<String>())
            for entry in entries where entry.depth == 4 && entry.path.hasPrefix(prefix) {
                let key = String(entry.path.dropFirst(prefix.count))
                let problems = value.read(key, written: key, entry, in: name, header: "[[\(name)]]")
                found += problems
                if !problems.isEmpty { wrong.insert(key) }
            }
            // An option with a wrong value is not missing.
            found += value.problems.filter { !wrong.contains($0.option) }
                .map { SettingsProblem(line: table.line, key: name, "\($0.option) \($0.text)") }
            if found.isEmpty { tables.append(value) }
            problems += found
        }
        return (tables, problems)
    }
}
