internal import WatchwordProtocol

/// Constructors for the options of upstream proxies.
extension ConfigurationOption {
    /// The tables of the list are read by `ProxyRuleTables`.
    static func proxyRules(_ key: String, _ summary: String) -> ConfigurationOption {
        ConfigurationOption(
            key, .proxyRules, summary, written: { _ in nil },
            change: { option, value, _ in
                switch value {
                case .tables: return []
                case .strings(let texts) where texts.isEmpty: return []
                default: return [option.wrongType(value)]
                }
            })
    }

    static func scriptURL(_ key: String, _ place: Place<String?>, _ summary: String) -> ConfigurationOption {
        ConfigurationOption(
            key, .scriptURL, summary, written: { $0[keyPath: place].map { "\"\($0)\"" } },
            change: { option, value, settings in
                guard case .string(let text) = value else { return [option.wrongType(value)] }
                guard ScriptURL.isValid(text) else {
                    return [
                        ValueProblem(text: "expected \(option.type.text), without user and password; \(option.advice)")
                    ]
                }
                settings[keyPath: place] = text
                return []
            })
    }
}
