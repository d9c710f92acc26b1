import JSONText
import WatchwordProtocol

@testable import WatchwordCore

/// Metadata of a server at `https://as.example` that offers everything.
let serverMetadata: JSON = [
    "issuer": "https://as.example", "authorization_endpoint": "https://as.example/auth",
    "token_endpoint": "https://as.example/token", "device_authorization_endpoint": "https://as.example/device",
    "revocation_endpoint": "https://as.example/revoke", "registration_endpoint": "https://as.example/register",
]

func server(_ change: JSON = [:]) throws -> AuthorizationServer {
    let issuer = serverMetadata.adding(change)["issuer"]?.string ?? ""
    return try AuthorizationServer(serverMetadata.adding(change).serialized(), for: issuer)
}

func reply(_ json: JSON?, status: Int = 200, _ headers: [HeaderField] = []) -> OAuthReply {
    OAuthReply(status: status, headers: HeaderBlock(headers), body: json?.serialized() ?? [])
}

/// Returns the kind of the failure that `body` throws; `nil` if it throws none.
func failure(_ body: () throws -> Void) -> FetchFailure? {
    do {
        try body()
        return nil
    } catch {
        return error as? FetchFailure
    }
}

extension OAuthRequest {
    /// The parameters of the body.
    var form: [String: String] { body.flatMap { OAuthText.query(String(decoding: $0, as: UTF8.self)) } ?? [:] }

    var proof: Proof? { headers.firstValue(of: "DPoP").flatMap(Proof.init) }
}

/// A proof that was parsed: header, claims and signature.
struct Proof {
    let (header, claims): (JSON, JSON)
    let signed: [UInt8]
    let signature: [UInt8]

    init?(_ text: String) {
        let parts = text.utf8.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false)
        guard parts.count == 3, let header = OAuthText.decodeBase64URL(parts[0]),
            let claims = OAuthText.decodeBase64URL(parts[1]), let signature = OAuthText.decodeBase64URL(parts[2]),
            let parsedHeader = OAuthDocument.parse(header), let parsedClaims = OAuthDocument.parse(claims)
        else { return nil }
        (self.header, self.claims, self.signature) = (parsedHeader, parsedClaims, signature)
        signed = Array(parts[0]) + [UInt8(ascii: ".")] + Array(parts[1])
    }

    /// The coordinates of the public key in the header.
    var point: [UInt8] {
        ["x", "y"].flatMap { name in
            (header["jwk"]?[name]?.string).flatMap { OAuthText.decodeBase64URL($0.utf8) } ?? []
        }
    }
}

/// Runs the search for one token step by step: each call is an event, and `commands` are the commands after it.
struct TokenRun {
    var machine: TokenMachine
    var now = Duration.seconds(100)
    var sinceEpoch = Duration.seconds(2_000_000_000)
    private(set) var commands: [TokenMachine.Command] = []
    /// All commands so far.
    private(set) var all: [TokenMachine.Command] = []

    /// A rule for `https://api.example/v1` with issuer, client and the scope `read`.
    static var rule: OAuthRule {
        var rule = OAuthRule(resource: "https://api.example/v1")
        (rule.issuer, rule.clientID, rule.scopes) = ("https://as.example", "me", ["read"])
        return rule
    }

    init(
        url: String = "https://api.example/v1/x", needsLogin: Bool = false, mayAsk: Bool = true,
        change: (inout OAuthRule) -> Void = { _ in }, challenge: (inout BearerParameters) -> Void = { _ in }
    ) throws {
        var (rule, parameters) = (Self.rule, BearerParameters())
        change(&rule)
        challenge(&parameters)
        machine = TokenMachine(
            TokenQuery(
                rule: rule, url: try FetchURL(url), challenge: parameters, needsLogin: needsLogin, mayAsk: mayAsk))
        handle(.started)
    }

    mutating func handle(_ event: TokenMachine.Event) {
        commands = machine.handle(event, TokenMachine.Clock(now: now, sinceEpoch: sinceEpoch))
        all += commands
    }

    mutating func reply(_ json: JSON?, status: Int = 200, _ headers: (String, String)...) {
        let fields = headers.map { HeaderField($0.0, $0.1) }
        handle(
            .replied(.success(OAuthReply(status: status, headers: HeaderBlock(fields), body: json?.serialized() ?? [])))
        )
    }

    mutating func failNetwork() { handle(.replied(.failure(FetchFailure(.cannotConnect, "no route")))) }

    /// Answers the request for the metadata of the server.
    mutating func findServer(_ change: JSON = [:]) { reply(serverMetadata.adding(change)) }

    /// Finds the server and this grant.
    mutating func find(_ grant: OAuthGrant?, server change: JSON = [:]) {
        findServer(change)
        handle(.found(grant))
    }

    /// Finds no grant, and begins a login in a browser.
    mutating func beginLogin(server change: JSON = [:]) {
        find(nil, server: change)
        handle(.listening(.success("127.0.0.1:7777")))
    }

    /// Sends the redirect of the server to the listener.
    mutating func redirect(_ number: Int = 1, _ change: [String: String?] = [:]) {
        var fields: [String: String?] = ["state": page["state"], "code": "the code"]
        fields.merge(change) { $1 }
        visit(number, fields)
    }

    mutating func visit(_ number: Int, _ fields: [String: String?]) {
        let query = fields.compactMap { name, value in value.map { "\(name)=\(OAuthText.formEncoded($0))" } }
        handle(.visited(method: "GET", target: "/callback?\(query.joined(separator: "&"))", number: number))
    }

    // MARK: Results

    /// The parameters of the login page.
    var page: [String: String] {
        guard case .waitingForBrowser(let login) = machine.state, let query = login.page.split(separator: "?").last
        else { return [:] }
        return OAuthText.query(String(query)) ?? [:]
    }

    var request: OAuthRequest? {
        commands.lazy.compactMap { if case .send(let request) = $0 { request } else { nil } }.first
    }

    var outcome: TokenOutcome? {
        all.lazy.compactMap { if case .finish(let outcome) = $0 { outcome } else { nil } }.first
    }

    var token: LoginCredential? { if case .token(let credential)? = outcome { credential } else { nil } }

    var failure: FetchFailure? { if case .failed(let failure)? = outcome { failure } else { nil } }

    var login: TokenLogin? {
        commands.lazy.compactMap { if case .ask(let login) = $0 { login } else { nil } }.first
    }

    var stored: OAuthGrant? {
        commands.lazy.compactMap { if case .store(let grant) = $0 { grant } else { nil } }.first
    }

    var wake: Duration? {
        commands.lazy.compactMap { if case .wake(let time) = $0 { time } else { nil } }.first
    }
}

/// A grant for the rule of `TokenRun`.
func grant(_ refresh: String = "r1", _ scopes: [String] = ["read"], change: (inout OAuthGrant) -> Void = { _ in })
    -> OAuthGrant
{
    let key = OAuthGrant.Key(resource: "https://api.example/v1", issuer: "https://as.example", clientID: "me")
    var grant = OAuthGrant(key, scopes: scopes, refresh: secret(refresh), registered: nil)
    change(&grant)
    return grant
}
