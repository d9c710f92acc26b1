use crate::challenge::AuthenticationMethod;
use crate::credential::{Credential, Wire};
use crate::{base64, Error};
use serde::{Deserialize, Serialize, Serializer};
use serde_json::{Map, Value};
use std::io::{self, Write};
use zeroize::Zeroizing;

/// A request for a fetch; only the URL is required. `Request::from("https://…")` is a GET.
#[derive(Clone, Default)]
pub struct Request {
    pub url: String,
    /// GET if empty.
    pub method: String,
    pub headers: Vec<(String, String)>,
    /// Sent only to the origin of the URL, and only after its challenge.
    pub credential: Option<Credential>,
    /// Further parameters of `fetch/run`, such as `timeoutMs`.
    pub params: Map<String, Value>,
}

impl From<&str> for Request {
    fn from(url: &str) -> Request { Request { url: url.to_owned(), ..Request::default() } }
}

impl Serialize for Wire<'_, Request> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct Members<'a> {
            url: &'a str,
            #[serde(skip_serializing_if = "str::is_empty")]
            method: &'a str,
            #[serde(skip_serializing_if = "<[_]>::is_empty")]
            headers: &'a [(String, String)],
            #[serde(skip_serializing_if = "Option::is_none")]
            credential: Option<Wire<'a, Credential>>,
            #[serde(flatten)]
            params: &'a Map<String, Value>,
        }
        let Request { url, method, headers, credential, params } = self.0;
        Members { url, method, headers, credential: credential.as_ref().map(Wire), params }.serialize(serializer)
    }
}

/// A response, whatever its status.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Response {
    pub fetch_id: String,
    pub status: u16,
    /// Absent if the status line has none, as with HTTP/2.
    pub reason: Option<String>,
    /// The URL of the last hop.
    pub url: String,
    pub http_version: String,
    /// The fields in the order received; names can repeat.
    pub headers: Vec<(String, String)>,
    /// Empty if the body was written to a sink.
    #[serde(skip)]
    pub body: Vec<u8>,
    /// The credential that the server accepted last.
    pub auth: Option<Authentication>,
    /// The credential that the proxy accepted.
    pub proxy_auth: Option<Authentication>,
    /// Why no respondent was asked about this 401, for each offered scheme.
    #[serde(default)]
    pub unanswered: Vec<UnansweredScheme>,
    /// Why there was no respondent, if that is a reason in `unanswered`.
    pub no_respondent: Option<String>,
}

/// A credential that a server or a proxy accepted. `source` is where the broker found it, such as `session`.
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[non_exhaustive]
pub struct Authentication {
    #[serde(flatten)]
    pub method: AuthenticationMethod,
    pub source: String,
    pub user: Option<String>,
}

/// A scheme that was offered and not asked about, with the reason, such as `noRespondent`.
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[non_exhaustive]
pub struct UnansweredScheme {
    pub scheme: String,
    pub reason: String,
}

/// A request, a reply or a notification. Member names are compared exactly; a second one of the same name is an error.
#[derive(Deserialize)]
pub(crate) struct Message {
    #[serde(default)]
    pub id: Value,
    pub method: Option<String>,
    #[serde(default)]
    pub params: Value,
    #[serde(default)]
    pub result: Value,
    pub error: Option<WireError>,
}

#[derive(Deserialize)]
pub(crate) struct WireError {
    pub code: i64,
    pub message: String,
    #[serde(default)]
    pub data: ErrorData,
}

#[derive(Default, Deserialize)]
#[serde(default)]
pub(crate) struct ErrorData {
    pub kind: String,
    pub retry: String,
    pub detail: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Started {
    pub fetch_id: String,
    pub attach_token: String,
}

#[derive(Deserialize)]
pub(crate) struct Part {
    pub data: Body,
    pub eof: bool,
}

#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "camelCase")]
pub(crate) enum Body {
    String { value: String },
    Base64 { value: String },
    #[serde(rename_all = "camelCase")]
    Handle { fetch_id: String },
}

impl Body {
    pub fn bytes(self) -> Result<Vec<u8>, Error> {
        match self {
            Body::String { value } => Ok(value.into_bytes()),
            Body::Base64 { value } => base64::decode(&value).ok_or_else(|| Error::Protocol("a body with invalid base64".to_owned())),
            Body::Handle { .. } => Err(Error::Protocol("a handle in place of data".to_owned())),
        }
    }
}

/// Returns the line that sends these members. It is overwritten when it is dropped, because it can contain a credential.
pub(crate) fn line(members: &impl Serialize) -> io::Result<Zeroizing<Vec<u8>>> {
    #[derive(Serialize)]
    struct Envelope<'a, M> {
        jsonrpc: &'static str,
        #[serde(flatten)]
        members: &'a M,
    }
    let envelope = Envelope { jsonrpc: "2.0", members };
    let mut size = Counter(1);
    serde_json::to_writer(&mut size, &envelope)?;
    // A vector that grows would leave copies behind.
    let mut line = Zeroizing::new(Vec::with_capacity(size.0));
    serde_json::to_writer(&mut *line, &envelope)?;
    line.push(b'\n');
    Ok(line)
}

struct Counter(usize);

impl Write for Counter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 += bytes.len();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_line_has_the_size_that_was_reserved() {
        let mut request = Request { credential: Some(Credential::token("t\u{1}\"")), ..Request::from("https://h/") };
        request.params.insert("timeoutMs".to_owned(), 5.into());
        let line = line(&Wire(&request)).unwrap();
        assert_eq!(line.len(), line.capacity());
        assert_eq!(
            serde_json::from_slice::<Value>(&line).unwrap(),
            json!({"jsonrpc": "2.0", "url": "https://h/", "credential": {"type": "token", "token": "t\u{1}\""}, "timeoutMs": 5}));
    }

    #[test]
    fn malformed_messages_are_errors() {
        let deep = "[".repeat(1000);
        for text in ["", "{", "[]", r#"{"id":1,"id":1}"#, r#"{"method":7}"#, r#"{"method":"\ud800"}"#, "{} 2", deep.as_str()] {
            assert!(serde_json::from_str::<Message>(text).is_err(), "{text}");
        }
    }
}
