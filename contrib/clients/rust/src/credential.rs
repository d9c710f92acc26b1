use crate::challenge::{KnownUser, Persistence};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use zeroize::Zeroizing;

/// A text that is overwritten when it is dropped. It implements neither `Debug` nor `Serialize`, so that it does not reach logs.
#[derive(Clone)]
pub struct Secret(Zeroizing<String>);

impl Secret {
    /// Returns the text.
    pub fn expose(&self) -> &str { &self.0 }
}

/// Takes over the memory of the text, which is overwritten later.
impl From<String> for Secret {
    fn from(text: String) -> Secret { Secret(Zeroizing::new(text)) }
}

/// Copies the text. Overwriting the original is up to the caller.
impl From<&str> for Secret {
    fn from(text: &str) -> Secret { Secret::from(text.to_owned()) }
}

impl<'de> Deserialize<'de> for Secret {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Secret, D::Error> { String::deserialize(deserializer).map(Secret::from) }
}

/// A credential. It implements neither `Debug` nor `Serialize`, so that it does not reach logs.
#[derive(Clone)]
pub struct Credential {
    members: Vec<(&'static str, Secret)>,
}

impl Credential {
    fn new(kind: &'static str) -> Credential { Credential { members: Vec::new() }.with("type", kind) }

    fn with(mut self, name: &'static str, value: impl Into<Secret>) -> Credential {
        self.members.retain(|(other, _)| *other != name);
        self.members.push((name, value.into()));
        self
    }

    /// For Basic, Digest, NTLM and SOCKS5.
    pub fn password(user: impl Into<Secret>, password: impl Into<Secret>) -> Credential {
        Credential::new("password").with("user", user).with("password", password)
    }

    /// For Bearer.
    pub fn token(token: impl Into<Secret>) -> Credential { Credential::new("token").with("token", token) }

    /// For a scheme that the broker does not know: the header field is `scheme value`.
    pub fn header(scheme: impl Into<Secret>, value: impl Into<Secret>) -> Credential {
        Credential::new("header").with("scheme", scheme).with("value", value)
    }

    /// A client certificate: an absolute path, PEM text, or a pkcs11: URI.
    pub fn certificate(certificate: impl Into<Secret>) -> Credential { Credential::new("certificate").with("certificate", certificate) }

    /// Accepts a server certificate with this key, regardless of its other problems.
    pub fn trust(spki_sha256: impl Into<Secret>) -> Credential { Credential::new("trust").with("spkiSha256", spki_sha256) }

    /// The credential that the challenge proposes.
    pub fn proposed() -> Credential { Credential::new("proposed") }

    /// A stored login that the challenge lists, without its password.
    pub fn stored(known: &KnownUser) -> Credential { Credential::new("stored").with("id", known.id.as_str()) }

    /// Sets the Windows domain of a password.
    pub fn domain(self, domain: impl Into<Secret>) -> Credential { self.with("domain", domain) }

    /// Limits a password to this path of the server and below.
    pub fn path(self, path: impl Into<Secret>) -> Credential { self.with("path", path) }

    /// Sets the time after which a password or a token is not sent (RFC 3339).
    pub fn expires_at(self, time: impl Into<Secret>) -> Credential { self.with("expiresAt", time) }

    /// Sets the OAuth refresh token of a password or a token.
    pub fn refresh_token(self, token: impl Into<Secret>) -> Credential { self.with("refreshToken", token) }

    /// Sets the data that the challenge of the next round returns, for a header.
    pub fn state(self, state: impl Into<Secret>) -> Credential { self.with("state", state) }

    /// Sets the key of a certificate: an absolute path, PEM text, or a pkcs11: URI.
    pub fn private_key(self, key: impl Into<Secret>) -> Credential { self.with("privateKey", key) }

    /// Sets the passphrase of the key, or the PIN of the token, of a certificate.
    pub fn passphrase(self, passphrase: impl Into<Secret>) -> Credential { self.with("passphrase", passphrase) }

    /// Sets how long the broker stores the credential.
    pub fn persistence(self, persistence: Persistence) -> Credential {
        self.with("persistence", match persistence {
            Persistence::None | Persistence::Unknown => "none",
            Persistence::ForSession => "forSession",
            Persistence::Permanent => "permanent",
        })
    }
}

/// The answer to a challenge.
#[derive(Clone)]
pub enum Answer {
    /// Make one attempt with this credential.
    Credential(Credential),
    /// Stop authenticating: the response with the challenge becomes the result, with its body.
    Continue,
    /// Let the fetch fail with `challengeCancelled`.
    Cancel,
    /// Let the broker decide: a stored credential, then an agent, then `Continue`.
    Default,
    /// Skip this scheme: the broker sends a challenge for the next offered one.
    Reject,
}

impl Answer {
    /// Returns an answer with a user and a password.
    pub fn password(user: impl Into<Secret>, password: impl Into<Secret>) -> Answer { Credential::password(user, password).into() }

    /// Returns an answer with a stored login that the challenge lists, without its password.
    pub fn stored(known: &KnownUser) -> Answer { Credential::stored(known).into() }

    /// Returns an answer with the credential that the challenge proposes.
    pub fn proposed() -> Answer { Credential::proposed().into() }
}

impl From<Credential> for Answer {
    fn from(credential: Credential) -> Answer { Answer::Credential(credential) }
}

/// The only place that serializes a credential, for the socket of the broker.
pub(crate) struct Wire<'a, T>(pub &'a T);

impl Serialize for Wire<'_, Credential> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.members.iter().map(|(name, value)| (name, value.expose())))
    }
}

impl Serialize for Wire<'_, Answer> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct Members<'a> {
            action: &'a str,
            #[serde(skip_serializing_if = "Option::is_none")]
            credential: Option<Wire<'a, Credential>>,
        }
        let (action, credential) = match self.0 {
            Answer::Credential(credential) => ("credential", Some(Wire(credential))),
            Answer::Continue => ("continue", None),
            Answer::Cancel => ("cancel", None),
            Answer::Default => ("default", None),
            Answer::Reject => ("reject", None),
        };
        Members { action, credential }.serialize(serializer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_have_the_members_of_the_protocol() {
        let answer: Answer = Credential::password("b\"ob", "pw").domain("A").domain("CORP").persistence(Persistence::None).into();
        assert_eq!(
            serde_json::to_string(&Wire(&answer)).unwrap(),
            r#"{"action":"credential","credential":{"type":"password","user":"b\"ob","password":"pw","domain":"CORP","persistence":"none"}}"#);
        assert_eq!(serde_json::to_string(&Wire(&Answer::Cancel)).unwrap(), r#"{"action":"cancel"}"#);
    }
}
