internal import WatchwordCore
internal import WatchwordProtocol

/// Sends requests to authorization servers, as fetches of the broker itself: the configured proxies and rules for hosts apply.
final class AuthorizationClient {
    typealias Completion = @Sendable (Result<OAuthReply, FetchFailure>) -> Void

    /// The time for which a metadata document is used again.
    private static let lifetime = Duration.seconds(600)
    private static let largestCache = 64

    private let methods: FetchMethods
    private let fetches: FetchRouter
    private var documents: [String: (reply: OAuthReply, until: Duration)] = [:]

    init(_ methods: FetchMethods, _ fetches: FetchRouter) { (self.methods, self.fetches) = (methods, fetches) }

    /// - Parameter client: the client whose agent or subscription is asked, if the request needs a login.
    func send(_ request: OAuthRequest, for client: ConnectionID?, completion: @escaping Completion) {
        let now = fetches.context.now
        if request.isDocument, let known = documents[request.url.text], known.until > now {
            return completion(.success(known.reply))
        }
        do {
            let connection = client.flatMap { fetches.clients[$0] }
            try methods.start(request, for: connection) { [weak self] result in
                let reply = result.map { OAuthReply($0.response) }.mapError { $0.ofLogin(at: request.url) }
                if request.isDocument, case .success(let document) = reply { self?.store(document, request.url.text) }
                completion(reply)
            }
        } catch let failure as FetchFailure {
            completion(.failure(failure.ofLogin(at: request.url)))
        } catch {
            completion(.failure(FetchFailure(.internalError, "unexpected error in the broker; see its log")))
        }
    }

    /// Forgets the documents, because one of them may be wrong.
    func forgetDocuments() { documents = [:] }

    private func store(_ reply: OAuthReply, _ url: String) {
        guard reply.status == 200 else { return }
        let now = fetches.context.now
        if documents.count >= Self.largestCache { documents = [:] }
        documents[url] = (reply, now + Self.lifetime)
    }
}

extension OAuthReply {
    fileprivate init(_ response: TransferResponse) {
        self.init(status: response.status, headers: response.headers, body: response.body)
    }
}

extension FetchFailure {
    /// Returns the failure with the step in which it has occurred: the program does not know the authorization server.
    fileprivate func ofLogin(at url: FetchURL) -> FetchFailure {
        guard kind != .challengeCancelled, kind != .cancelled, kind != .shuttingDown else { return self }
        return FetchFailure(kind, "cannot log in at \(url.origin.text): \(text)", cause: cause)
    }
}
