use crate::Secret;
use serde::Deserialize;

/// A challenge of the broker: a demand for a login, or for a decision about a certificate.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Challenge {
    #[serde(rename = "challengeId")]
    pub id: String,
    pub fetch_id: String,
    pub url: String,
    pub method: String,
    pub protection_space: ProtectionSpace,
    /// All schemes that the server offers, in its order; empty for certificates and SOCKS5.
    #[serde(default)]
    pub offers: Vec<Offer>,
    /// With no previous failure, `Answer::proposed()` uses it; after one, it was refused, and only prefills a prompt.
    pub proposed_credential: Option<ProposedCredential>,
    /// Stored logins that match; `Answer::stored` answers with one.
    #[serde(default)]
    pub known_users: Vec<KnownUser>,
    /// The number of failed attempts of this fetch at this target. When it has increased, the server has refused the last answer.
    pub previous_failure_count: u32,
    /// The reason why the last answer could not be used, if the server did not refuse it.
    pub error: Option<ChallengeError>,
    /// The types of credential that can answer.
    #[serde(default)]
    pub accepts: Vec<CredentialType>,
    #[serde(default)]
    pub persistence_allowed: Vec<Persistence>,
    /// How long an answer for the session is stored; `None` if it is not allowed.
    pub session_limits: Option<SessionLimits>,
    /// The time for the answer in milliseconds, from delivery.
    pub deadline_ms: u64,
    /// The server has accepted a stronger scheme here before.
    #[serde(default)]
    pub downgrade: bool,
    /// The realm in which the server has accepted a login here before, if this realm is new.
    pub former_realm: Option<String>,
    /// The SHA-256 hash of the public key of the server's certificate, if it was accepted by exception.
    pub certificate_exception: Option<String>,
    /// The proxy to which the request goes, if the program names it.
    pub named_proxy: Option<String>,
    /// A login in a browser that also provides the token; the broker withdraws the challenge when it is complete.
    pub login: Option<TokenLogin>,
    /// The state of the last answer of type header, in the next round of its scheme.
    pub state: Option<Secret>,
}

/// The times after which an answer for the session is removed, in milliseconds.
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct SessionLimits {
    /// The time without use; `None` for a decision about a server's certificate.
    pub idle_ms: Option<u64>,
    pub lifetime_ms: u64,
}

/// A login in a browser that also answers a challenge, at `url`. `expires_at` is in RFC 3339.
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct TokenLogin {
    /// `browser`, for a login in a browser of this session, or `device`, for one with a code.
    pub flow: String,
    pub issuer: String,
    pub client_id: String,
    pub scopes: Vec<String>,
    pub url: String,
    /// The address that contains the code, if the server has one.
    pub complete_url: Option<String>,
    pub user_code: Option<String>,
    pub expires_at: String,
}

/// The scope in which a credential is valid. `realm` is untrusted text from the server.
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ProtectionSpace {
    pub protocol: String,
    pub host: String,
    pub port: u16,
    pub realm: Option<String>,
    #[serde(flatten)]
    pub method: AuthenticationMethod,
    pub is_proxy: bool,
    pub proxy_type: Option<String>,
    /// False if others on the network path could read the password.
    pub receives_credential_securely: bool,
}

/// An authentication method, with what the broker knows about it.
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(tag = "authenticationMethod", rename_all = "camelCase")]
#[non_exhaustive]
pub enum AuthenticationMethod {
    HttpBasic,
    HttpDigest,
    Ntlm,
    Negotiate,
    Bearer,
    /// A scheme for which only a credential of type header answers.
    #[serde(rename = "other")]
    OtherScheme,
    /// A server requests a client certificate from one of these issuers (RFC 4514), or from any if there are none.
    #[serde(rename_all = "camelCase")]
    ClientCertificate {
        #[serde(default)]
        distinguished_names: Vec<String>,
    },
    /// A server's certificate needs a decision.
    #[serde(rename_all = "camelCase")]
    ServerTrust {
        #[serde(default)]
        server_trust: ServerTrust,
    },
    /// A method of a newer broker.
    #[serde(other)]
    Unknown,
}

/// The certificates that a server presented, the leaf first, and their problems, such as `selfSigned`.
#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
#[non_exhaustive]
pub struct ServerTrust {
    pub chain: Vec<Certificate>,
    pub problems: Vec<String>,
}

/// A certificate of a server. The times are RFC 3339, or empty if they are invalid.
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Certificate {
    pub pem: String,
    pub subject: String,
    pub issuer: String,
    pub not_before: String,
    pub not_after: String,
    pub sha256: String,
    /// The fingerprint of its key, for `Credential::trust`.
    pub spki_sha256: String,
    pub subject_alt_names: Vec<String>,
}

/// A scheme that a server or a proxy offers.
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[non_exhaustive]
pub struct Offer {
    pub scheme: String,
    #[serde(flatten)]
    pub method: AuthenticationMethod,
    pub realm: Option<String>,
    #[serde(default)]
    pub params: std::collections::BTreeMap<String, String>,
    /// The challenge as the server sent it.
    pub raw: String,
    /// Whether the broker computes the header field from a credential.
    pub supported: bool,
    /// Why the challenge is weak: `noRealm`, `noQop` or `unquotedRealm`.
    #[serde(default)]
    pub weak: Vec<String>,
}

/// A credential that the broker has, without its secret.
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ProposedCredential {
    pub user: Option<String>,
    /// Whether `Answer::proposed()` can use it.
    pub has_password: bool,
    pub source: String,
}

/// A stored login that matches a challenge; `Answer::stored` answers with it.
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[non_exhaustive]
pub struct KnownUser {
    pub id: String,
    pub user: String,
    /// The Windows domain, if the login has one separate from the user.
    pub domain: Option<String>,
    pub source: String,
}

/// The reason why an answer could not be used.
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[non_exhaustive]
pub struct ChallengeError {
    pub kind: ChallengeErrorKind,
    pub message: String,
}

/// The kinds of `ChallengeError`; the specification describes them.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub enum ChallengeErrorKind {
    CredentialAlreadyRefused,
    NothingProposed,
    CredentialNotUsable,
    CredentialOfWrongType,
    ConnectionNotSecure,
    CertificateNotUsable,
    KeyExposed,
    CertificateChanged,
    PassphraseWrong,
    PinNotTried,
    CertificateRefused,
    CredentialNotKnown,
    CredentialExpired,
    CredentialForOtherPath,
    FingerprintWrong,
    /// A kind of a newer broker.
    #[serde(other)]
    Unknown,
}

/// A type of credential that a challenge accepts.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub enum CredentialType {
    Password,
    Token,
    Header,
    Certificate,
    Trust,
    /// A type of a newer broker.
    #[serde(other)]
    Unknown,
}

/// How long the broker stores a credential once the server has accepted it.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub enum Persistence {
    /// For this fetch only.
    None,
    /// In the session.
    ForSession,
    /// In the keyring, too.
    Permanent,
    /// A value of a newer broker. In an answer it means `None`.
    #[serde(other)]
    Unknown,
}

/// The end of a challenge; `outcome` is absent if another respondent answered it.
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Resolved {
    pub challenge_id: String,
    pub outcome: Option<Outcome>,
    /// The user that the login was sent as.
    pub user: Option<String>,
}

/// The outcome of an answer.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub enum Outcome {
    /// The server or the proxy accepted the credential.
    Accepted,
    /// The server or the proxy refused the credential.
    Refused,
    /// The fetch ended first.
    Abandoned,
    /// The answer could not be used, or was one of several rounds; another challenge follows.
    Superseded,
    /// An outcome of a newer broker.
    #[serde(other)]
    Unknown,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn space(members: &str) -> ProtectionSpace {
        let start = r#"{"protocol":"https","host":"h","port":443,"realm":null,"isProxy":false,"receivesCredentialSecurely":true,"#;
        serde_json::from_str(&format!("{start}{members}}}")).unwrap()
    }

    #[test]
    fn each_method_has_its_own_members() {
        assert_eq!(space(r#""authenticationMethod":"httpBasic""#).method, AuthenticationMethod::HttpBasic);
        assert_eq!(space(r#""authenticationMethod":"other""#).method, AuthenticationMethod::OtherScheme);
        assert_eq!(space(r#""authenticationMethod":"ofTomorrow","more":[1]"#).method, AuthenticationMethod::Unknown);
        let requested = space(r#""authenticationMethod":"clientCertificate","distinguishedNames":["CN=a"]"#);
        assert_eq!(requested.method, AuthenticationMethod::ClientCertificate { distinguished_names: vec!["CN=a".to_owned()] });
        match space(r#""authenticationMethod":"serverTrust","serverTrust":{"chain":[],"problems":["expired"]}"#).method {
            AuthenticationMethod::ServerTrust { server_trust } => assert_eq!(server_trust.problems, ["expired"]),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_login_in_a_browser_has_a_code_only_for_a_device() {
        let start = r#"{"issuer":"https://i","clientId":"c","scopes":["read"],"url":"https://i/device","expiresAt":"2026-11-25T20:00:00Z","#;
        let read = |members: &str| serde_json::from_str::<TokenLogin>(&format!("{start}{members}}}")).unwrap();
        assert_eq!(read(r#""flow":"browser""#).user_code, None);
        let device = read(r#""flow":"device","userCode":"AB","completeUrl":"https://i/device?c=AB""#);
        assert_eq!((device.user_code.as_deref(), device.complete_url.as_deref()), (Some("AB"), Some("https://i/device?c=AB")));
    }

    #[test]
    fn values_of_a_newer_broker_are_unknown() {
        assert_eq!(serde_json::from_str::<Vec<Outcome>>(r#"["refused","of tomorrow"]"#).unwrap(), [Outcome::Refused, Outcome::Unknown]);
        let error: ChallengeError = serde_json::from_str(r#"{"kind":"ofTomorrow","message":"m"}"#).unwrap();
        assert_eq!(error.kind, ChallengeErrorKind::Unknown);
    }
}
