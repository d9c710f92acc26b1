internal import CCurl
internal import WatchwordCore
internal import WatchwordProtocol

/// Decides to which addresses libcurl may connect for one transfer, and over which existing connections it may send.
struct ConnectionGate {
    private let rules: AddressRules
    private var hasAdmitted = false
    private var denied: (address: String, port: Int, isOwn: Bool)?

    init(_ rules: AddressRules) { self.rules = rules }

    /// Whether every address is allowed.
    var isOpen: Bool { rules.isEmpty }

    /// Records a connection to `address`, and returns whether it is allowed.
    /// - Parameter address: `nil` if the address is unknown, or neither IPv4 nor IPv6. It is then denied if there are any
    ///   rules for the port.
    mutating func admit(_ address: @autoclosure () -> NetworkAddress?, port: Int) -> Bool {
        guard rules.concerns(port: port) else {
            hasAdmitted = true
            return true
        }
        let address = address()
        let isDenied = address.map { rules.denies($0, port: port) } ?? true
        if isDenied {
            let isOwn = address.map { rules.isOwn($0, port: port) } ?? false
            denied = (address.map { "\($0)" } ?? "an unknown address", port, isOwn)
        } else {
            hasAdmitted = true
        }
        return !isDenied
    }

    /// The failure of a transfer whose addresses were all denied; `nil` if none was denied or any was allowed.
    func failure(for request: SharedRequest) -> TransferFailure? {
        guard let denied, !hasAdmitted else { return nil }
        let name = request.proxy?.host ?? request.url.origin.host.string
        let text =
            denied.isOwn
            ? "\(denied.address), port \(denied.port), which \(name) leads to, is a front of watchword, to which it never connects; use the address of the server itself"
            : "the configuration does not allow connections to \(denied.address), port \(denied.port), for \(name) (fetch.deny)"
        return TransferFailure(.cannotConnect, text, cause: .addressDenied)
    }
}

extension NetworkAddress {
    init?(_ address: UnsafePointer<curl_sockaddr>) {
        var bytes = [UInt8](repeating: 0, count: 16)
        let count = watchword_curl_address(address, &bytes)
        self.init(bytes: Array(bytes.prefix(Int(count))))
    }
}
