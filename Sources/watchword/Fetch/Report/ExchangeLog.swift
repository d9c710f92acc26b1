import JSONText
import WatchwordProtocol

/// The requests and responses of one fetch, as `fetch/request` and `fetch/response` tell them.
struct ExchangeLog: Equatable {
    /// Of the last request.
    private(set) var method: String?
    private(set) var url: String?
    private(set) var redirects = 0
    /// Of all responses.
    private(set) var headerBytes = 0
    /// The last response. Whether it is the final one is known when another request is sent, or `fetch/headers` comes.
    private var pending: ResponseHead?

    /// The head of a redirect that is being followed, once that is known.
    mutating func note(_ method: String, _ params: JSON) -> ResponseHead? {
        switch method {
        case BrokerMethodName.fetchRequest.rawValue:
            self.method = params["method"]?.string
            url = params["url"]?.string
            defer { pending = nil }
            // A challenge that is being answered is no news for who reads the response.
            guard let pending, (300..<400).contains(pending.status) else { return nil }
            redirects += 1
            return pending
        case BrokerMethodName.fetchResponse.rawValue:
            let head = ResponseHead(params)
            headerBytes += head.bytes.count
            pending = head
            return nil
        default:
            return nil
        }
    }
}
