internal import WatchwordProtocol

/// Constructors for the options of fronts.
extension ConfigurationOption {
    static func address(_ key: String, _ place: Place<FrontAddress?>, _ summary: String) -> ConfigurationOption {
        ConfigurationOption(
            key, .address, summary, written: { $0[keyPath: place].map { "\"\($0.text)\"" } },
            change: { option, value, settings in
                guard case .string(let text) = value else { return [option.wrongType(value)] }
                do throws(FrontAddress.Invalid) {
                    settings[keyPath: place] = try FrontAddress(text)
                    return []
                } catch {
                    return [ValueProblem(text: error.text)]
                }
            })
    }

    static func ports(_ key: String, _ place: Place<[Int]>, _ summary: String) -> ConfigurationOption {
        ConfigurationOption(
            key, .ports, summary,
            written: { "[\($0[keyPath: place].map(String.init).joined(separator: ", "))]" },
            change: { option, value, settings in
                switch value {
                case .strings(let texts) where texts.isEmpty: settings[keyPath: place] = []
                case .integers(let numbers):
                    guard let wrong = numbers.first(where: { !(1...65_535).contains($0) }) else {
                        settings[keyPath: place] = numbers.map { Int($0) }
                        return []
                    }
                    return [ValueProblem(text: "expected \(option.type.text), found \(wrong); \(option.advice)")]
                default: return [option.wrongType(value)]
                }
                return []
            })
    }

    /// The tables of the list are read by `FrontSiteTables`.
    static func sites(_ key: String, _ place: Place<[FrontSiteSetting]>, _ summary: String) -> ConfigurationOption {
        ConfigurationOption(
            key, .sites, summary, written: { _ in nil },
            change: { option, value, _ in
                switch value {
                case .tables: return []
                case .strings(let texts) where texts.isEmpty: return []
                default: return [option.wrongType(value)]
                }
            })
    }
}
