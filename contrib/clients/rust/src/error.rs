use crate::json::Json;
use std::{fmt, io};

/// What can go wrong.
pub enum Error {
    /// Nobody listens at the path.
    NotRunning { path: String, reason: io::Error },
    /// Another user listens at the path, or could: nothing was sent.
    NotTrusted { path: String, reason: String },
    /// The broker at the path went away in the middle of it.
    Closed { path: String },
    /// The broker's own answer. `kind` is stable; `retry` is `never`, `later` or `differently`.
    Broker { code: i64, kind: String, message: String, retry: String },
    /// The broker has said something that is not in the protocol.
    Protocol(String),
    /// The program's own: of the request's body, or of who takes the response's.
    Io(io::Error),
}

impl Error {
    /// The stable name of what the broker says went wrong; empty for everything else.
    pub fn kind(&self) -> &str {
        match self {
            Error::Broker { kind, .. } => kind,
            _ => "",
        }
    }

    /// Whether the very same may work another time.
    pub fn is_retriable(&self) -> bool { matches!(self, Error::Broker { retry, .. } if retry == "later") }

    pub(crate) fn of(error: &Json) -> Error {
        let text = |value: &Json| value.text().unwrap_or("").to_owned();
        let data = error.get("data");
        let message = if *data.get("detail") == Json::Null { error.get("message") } else { data.get("detail") };
        Error::Broker {
            code: error.get("code").integer().unwrap_or(0),
            kind: text(data.get("kind")),
            message: text(message),
            retry: text(data.get("retry")),
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::NotRunning { path, reason } => write!(
                f, "no broker listens at {path} ({reason}): start one with `systemctl --user start watchword.socket` or `watchwordd`"),
            Error::NotTrusted { path, reason } => write!(
                f, "refusing to use the socket {path}: {reason}; it has to be in a directory that only you can write to, such as $XDG_RUNTIME_DIR/watchword"),
            Error::Closed { path } => write!(f, "the broker at {path} has closed the connection: look at its log, connect and try again"),
            Error::Broker { kind, message, .. } => write!(f, "{message} ({kind})"),
            Error::Protocol(what) => write!(f, "the broker said something that was not understood: {what}"),
            Error::Io(error) => error.fmt(f),
        }
    }
}

/// As for people: it is what a program shows whose `main` returns it.
impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result { fmt::Display::fmt(self, f) }
}

impl std::error::Error for Error {}
