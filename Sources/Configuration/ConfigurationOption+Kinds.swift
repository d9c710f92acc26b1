internal import WatchwordProtocol

/// Constructors for each type of value, which convert between the file and the settings.
extension ConfigurationOption {
    typealias Place<Value> = any WritableKeyPath<Settings, Value> & Sendable

    static func seconds(
        _ key: String, _ range: ClosedRange<Int64>, _ place: Place<Duration>, _ summary: String
    ) -> ConfigurationOption {
        integer(
            key, range, summary, get: { $0[keyPath: place].components.seconds },
            set: { $0[keyPath: place] = .seconds($1) })
    }

    static func milliseconds(
        _ key: String, _ range: ClosedRange<Int64>, _ place: Place<Duration>, _ summary: String
    ) -> ConfigurationOption {
        integer(
            key, range, summary, get: { Int64($0[keyPath: place] / .milliseconds(1)) },
            set: { $0[keyPath: place] = .milliseconds($1) })
    }

    static func count(
        _ key: String, _ range: ClosedRange<Int64>, _ place: Place<Int>, _ summary: String
    ) -> ConfigurationOption {
        integer(key, range, summary, get: { Int64($0[keyPath: place]) }, set: { $0[keyPath: place] = Int($1) })
    }

    private static func integer(
        _ key: String, _ range: ClosedRange<Int64>, _ summary: String,
        get: @escaping @Sendable (Settings) -> Int64, set: @escaping @Sendable (inout Settings, Int64) -> Void
    ) -> ConfigurationOption {
        ConfigurationOption(
            key, .integer(range), summary, written: { "\(get($0))" },
            change: { option, value, settings in
                guard case .integer(let number) = value else { return [option.wrongType(value)] }
                guard range.contains(number) else {
                    return [
                        ValueProblem(text: "expected \(option.type.text), found \(number); \(option.advice)")
                    ]
                }
                set(&settings, number)
                return []
            })
    }

    static func boolean(_ key: String, _ place: Place<Bool>, _ summary: String) -> ConfigurationOption {
        ConfigurationOption(
            key, .boolean, summary, written: { "\($0[keyPath: place])" },
            change: { option, value, settings in
                guard case .boolean(let flag) = value else { return [option.wrongType(value)] }
                settings[keyPath: place] = flag
                return []
            })
    }

    static func choice<Value: CaseIterable & RawRepresentable<String> & SendableMetatype>(
        _ key: String, _ place: Place<Value>, _ summary: String
    ) -> ConfigurationOption {
        let type = ValueType.choice(Value.allCases.map(\.rawValue))
        return ConfigurationOption(
            key, type, summary, written: { "\"\($0[keyPath: place].rawValue)\"" },
            change: { option, value, settings in
                guard case .string(let name) = value else { return [option.wrongType(value)] }
                guard let chosen = Value(rawValue: name) else {
                    let found = "\"\(name.shortened)\""
                    return [ValueProblem(text: "expected \(type.text), found \(found); \(option.advice)")]
                }
                settings[keyPath: place] = chosen
                return []
            })
    }

    static func hosts(
        _ key: String, _ place: Place<[HostPattern]>, _ summary: String, allowsNetworks: Bool = false
    ) -> ConfigurationOption {
        hosts(key, summary, allowsNetworks, get: { $0[keyPath: place] }, set: { $0[keyPath: place] = $1 })
    }

    /// Makes an option for a list; an absent list differs from an empty one.
    static func hosts(_ key: String, _ place: Place<[HostPattern]?>, _ summary: String) -> ConfigurationOption {
        hosts(key, summary, get: { $0[keyPath: place] }, set: { $0[keyPath: place] = $1 })
    }

    private static func hosts(
        _ key: String, _ summary: String, _ allowsNetworks: Bool = false,
        get: @escaping @Sendable (Settings) -> [HostPattern]?,
        set: @escaping @Sendable (inout Settings, [HostPattern]) -> Void
    ) -> ConfigurationOption {
        ConfigurationOption(
            key, .hosts, summary,
            written: { settings in get(settings).map { "[\($0.map { "\"\($0)\"" }.joined(separator: ", "))]" } },
            change: { option, value, settings in
                guard case .strings(let texts) = value else { return [option.wrongType(value)] }
                var (patterns, problems): ([HostPattern], [ValueProblem]) = ([], [])
                for text in texts {
                    do throws(HostPattern.Invalid) {
                        patterns.append(try HostPattern(text.text, allowsNetworks: allowsNetworks))
                    } catch {
                        problems.append(ValueProblem(line: text.line, text: error.text))
                    }
                }
                if problems.isEmpty { set(&settings, patterns) }
                return problems
            })
    }

    static func path(
        _ key: String, _ place: Place<String?>, _ summary: String, type: ValueType = .path
    ) -> ConfigurationOption {
        ConfigurationOption(
            key, type, summary, written: { $0[keyPath: place].map { "\"\($0)\"" } },
            change: { option, value, settings in
                guard case .string(let text) = value else { return [option.wrongType(value)] }
                let isBelowHome = type == .homePath && text.hasPrefix("~/")
                guard text.hasPrefix("/") || isBelowHome, !text.utf8.contains(0) else {
                    return [ValueProblem(text: "expected \(type.text); \(option.advice)")]
                }
                settings[keyPath: place] = text
                return []
            })
    }

    static func proxyURL(_ key: String, _ place: Place<String?>, _ summary: String) -> ConfigurationOption {
        ConfigurationOption(
            key, .proxyURL, summary, written: { $0[keyPath: place].map { "\"\($0)\"" } },
            change: { option, value, settings in
                guard case .string(let text) = value else { return [option.wrongType(value)] }
                do throws(Refusal) {
                    settings[keyPath: place] = try ProxyURL.canonical(text)
                    return []
                } catch {
                    return [ValueProblem(text: error.text)]
                }
            })
    }
}
