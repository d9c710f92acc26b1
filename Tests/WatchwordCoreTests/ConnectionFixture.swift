import WatchwordProtocol

@testable import WatchwordCore

/// The proxy of the configuration.
let wayOut = ProxyEndpoint(type: .http, host: "p", port: 3128)

func hash(_ key: UInt8) -> [UInt8] { Array(repeating: key, count: 32) }

/// Returns the facts about a server certificate with the key `key`.
func facts(_ key: UInt8, _ problems: Set<ServerTrustFacts.Problem> = [.selfSigned]) -> ServerTrustFacts {
    let leaf = CertificateFacts(
        pem: "", subject: "CN=h", issuer: "CN=h", notBefore: "", notAfter: "", sha256: hash(key + 100),
        spkiSha256: hash(key), subjectAltNames: [])
    return ServerTrustFacts(chain: [leaf], problems: problems)
}

func trust(_ key: UInt8, _ persistence: Persistence = .none) -> ChallengeAnswer {
    .credential(.trust(TrustCredential(spkiSha256: Hexadecimal.text(hash(key)), persistence: persistence)))
}

func certificate(_ name: String, _ persistence: Persistence = .none) -> CertificateCredential {
    CertificateCredential(certificate: secret("/\(name).pem"), persistence: persistence)
}

extension TransferFailure {
    static func untrusted(
        _ key: UInt8, _ problems: Set<ServerTrustFacts.Problem> = [.selfSigned]
    ) -> TransferFailure {
        var failure = TransferFailure(.serverNotTrusted, "detail")
        failure.serverTrust = facts(key, problems)
        return failure
    }

    static func certificate(_ cause: Cause) -> TransferFailure {
        var failure = TransferFailure(.tlsFailed, "detail", cause: cause)
        failure.clientCertificateRequest = ClientCertificateRequest(distinguishedNames: ["CN=CA"])
        return failure
    }
}

extension TransferRequest {
    /// The pinned key; `nil` for normal verification.
    var trustedKey: UInt8? {
        if case .leaf(let spki) = trust { spki.first } else { nil }
    }

    var shownCertificate: String? {
        if case .file(let path)? = clientCertificate?.certificate { path } else { nil }
    }

    var proxyLogin: String? { proxy?.authorization?.revealed }
}

/// A subscription to all challenges, including those about connections.
let pinning = Subscription(delivery: .request, mode: .everything)

/// A subscription to certificates only: the client does not decide about logins.
let trustOnly = Subscription(delivery: .request, methods: [.serverTrust], mode: .everything)

extension TableRun {
    func last(_ id: FetchID) -> TransferRequest? { requests[id]?.last }

    /// Returns the first request of a new fetch.
    mutating func first(_ url: String) throws -> TransferRequest? {
        let fetch = try fetch(url)
        return last(fetch)
    }

    func identity(_ id: FetchID) -> ConnectionIdentity? { last(id)?.identity }

    func asksAbout(_ id: FetchID) -> AuthenticationMethod? { question(id)?.protectionSpace.authenticationMethod }
}
