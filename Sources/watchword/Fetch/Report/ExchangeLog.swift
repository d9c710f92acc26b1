import JSONText
import WatchwordProtocol

/// The requests and responses of one fetch, as reported by `fetch/request` and `fetch/response`.
struct ExchangeLog: Equatable {
    /// The method of the last request.
    private(set) var method: String?
    private(set) var url: String?
    private(set) var redirects = 0
    /// The size of all response headers in bytes.
    private(set) var headerBytes = 0
    /// The last response. It is not the final one if another request follows.
    private var pending: ReportedHead?

    /// Records a notification. For the request after a redirect, returns the header of the redirect.
    mutating func record(_ method: String, _ params: JSON) -> ReportedHead? {
        switch method {
        case BrokerMethodName.fetchRequest.rawValue:
            self.method = params["method"]?.string
            url = params["url"]?.string
            defer { pending = nil }
            // A response whose challenge is being answered is not part of the output.
            guard let pending, (300..<400).contains(pending.status) else { return nil }
            redirects += 1
            return pending
        case BrokerMethodName.fetchResponse.rawValue:
            let head = ReportedHead(params)
            headerBytes += head.bytes.count
            pending = head
            return nil
        default:
            return nil
        }
    }
}
