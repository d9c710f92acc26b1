internal import CCurl
internal import WatchwordCore
internal import WatchwordProtocol

/// Decides for one transfer to which addresses libcurl may connect, and over which connections from before it may send.
struct ConnectionGate {
    private let rules: AddressRules
    private var hasAdmitted = false
    private var denied: (address: String, port: Int)?

    init(_ rules: AddressRules) { self.rules = rules }

    /// Whether anything is checked.
    var isOpen: Bool { rules.isEmpty }

    /// - Parameter address: `nil` for one that is neither IPv4 nor IPv6, or not known.
    mutating func admit(_ address: NetworkAddress?, port: Int) -> Bool {
        let isDenied = address.map { rules.denies($0, port: port) } ?? !rules.isEmpty
        if isDenied { denied = (address.map { "\($0)" } ?? "an unknown address", port) } else { hasAdmitted = true }
        return !isDenied
    }

    /// Why the transfer has failed; `nil` where some address was admitted, and the failure is another.
    func failure(for request: TransferRequest) -> TransferFailure? {
        guard let denied, !hasAdmitted else { return nil }
        let name = request.proxy?.host ?? request.url.origin.host.string
        return TransferFailure(
            .cannotConnect,
            "the configuration does not allow connections to \(denied.address), port \(denied.port), for \(name) (fetch.deny)",
            cause: .addressDenied)
    }
}

extension NetworkAddress {
    init?(_ address: UnsafePointer<curl_sockaddr>) {
        var bytes = [UInt8](repeating: 0, count: 16)
        let count = watchword_curl_address(address, &bytes)
        self.init(bytes: Array(bytes.prefix(Int(count))))
    }
}
