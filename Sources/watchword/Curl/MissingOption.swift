/// An option of curl's that somebody has used, and that is not here.
struct MissingOption {
    let reason: String

    /// - Parameter message: of the parser.
    init?(_ message: String) {
        let start = "Unknown option '"
        guard let range = message.firstRange(of: start), let end = message[range.upperBound...].firstIndex(of: "'")
        else {
            return nil
        }
        guard let option = CurlOption.named(String(message[range.upperBound..<end])),
            case .absent(let reason) = option.verdict
        else { return nil }
        self.reason =
            "curl's \(option.name) is not here. \(reason.rawValue) Every option of curl: man watchword-curl"
    }
}
