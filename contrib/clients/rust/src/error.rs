use crate::messages::WireError;
use std::{fmt, io};

/// The errors of this crate.
pub enum Error {
    /// No process listens on the socket.
    NotRunning { path: String, reason: io::Error },
    /// Another user listens on the socket, or could replace it. Nothing was sent.
    NotTrusted { path: String, reason: String },
    /// The broker closed the connection during a call.
    Closed { path: String },
    /// An error reported by the broker. `kind` is stable; `retry` is `never`, `later` or `differently`.
    Broker { code: i64, kind: String, message: String, retry: String },
    /// The broker sent something that violates the protocol.
    Protocol(String),
    /// Reading the caller's request body, or writing to its sink for the response body, failed.
    Io(io::Error),
}

impl Error {
    /// Returns the stable kind of an error reported by the broker; empty for others.
    pub fn kind(&self) -> &str {
        match self {
            Error::Broker { kind, .. } => kind,
            _ => "",
        }
    }

    /// Whether the same request may succeed later.
    pub fn is_retriable(&self) -> bool { matches!(self, Error::Broker { retry, .. } if retry == "later") }

    pub(crate) fn of(error: WireError) -> Error {
        let WireError { code, message, data } = error;
        Error::Broker { code, kind: data.kind, message: data.detail.unwrap_or(message), retry: data.retry }
    }

    pub(crate) fn malformed(error: serde_json::Error) -> Error { Error::Protocol(error.to_string()) }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::NotRunning { path, reason } => write!(
                f, "no broker listens at {path} ({reason}); start one with `systemctl --user start watchword.socket` or `watchwordd`"),
            Error::NotTrusted { path, reason } => write!(
                f, "refusing to use the socket {path}: {reason}; the socket must be in a directory that only you can write to, such as $XDG_RUNTIME_DIR/watchword"),
            Error::Closed { path } => write!(f, "the broker at {path} closed the connection; see its log, then connect again"),
            Error::Broker { kind, message, .. } => write!(f, "{message} ({kind})"),
            Error::Protocol(what) => write!(f, "malformed message from the broker: {what}"),
            Error::Io(error) => error.fmt(f),
        }
    }
}

/// The same text as `Display`, because a program whose `main` returns the error prints it with `Debug`.
impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result { fmt::Display::fmt(self, f) }
}

impl std::error::Error for Error {}
