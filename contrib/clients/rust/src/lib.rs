//! A client for the Watchword credential broker.
//!
//! ```no_run
//! let mut broker = watchword::Watchword::connect(|_| watchword::Answer::password("bob", "…"))?;
//! let page = broker.fetch("https://intranet.example/report")?;
//! # Ok::<(), watchword::Error>(())
//! ```
//!
//! The feature `async` adds `AsyncWatchword`, for several fetches at a time.

#[cfg(feature = "async")]
mod asynchronous;
mod base64;
mod challenge;
mod credential;
mod error;
mod messages;
mod trust;

#[cfg(feature = "async")]
pub use asynchronous::{AsyncWatchword, ResponseBody};
pub use challenge::*;
pub use credential::{Answer, Credential, Secret};
pub use error::Error;
use credential::Wire;
use messages::{Body, Message, Part, Started};
pub use messages::{Authentication, Request, Response, UnansweredScheme};
use serde::de::DeserializeOwned;
use serde::Serialize;
use serde_json::{json, Value};
use std::collections::HashMap;
use std::env;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Mutex};
use std::thread;

/// The version of this crate, which `initialize` sends.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Cancels the current call of a connection from another thread.
#[derive(Clone)]
pub struct Canceller {
    writer: Arc<Mutex<UnixStream>>,
    current: Arc<Mutex<Option<Value>>>,
}

impl Canceller {
    /// Makes the current call return the error `cancelled`. Does nothing if no call is active.
    pub fn cancel(&self) {
        if let Some(message) = self.current.lock().unwrap_or_else(|e| e.into_inner()).clone() {
            let _ = send(&self.writer, &message);
        }
    }
}

/// A connection that makes one call at a time.
pub struct Watchword<A> {
    path: String,
    reader: BufReader<UnixStream>,
    writer: Arc<Mutex<UnixStream>>,
    /// The message that cancels the current call.
    current: Arc<Mutex<Option<Value>>>,
    answer: A,
    resolved: Option<Box<dyn FnMut(&Resolved)>>,
    last: u64,
    begun: HashMap<String, Value>,
    completed: HashMap<String, Value>,
}

/// Returns `$WATCHWORD_SOCKET`, or the path below `$XDG_RUNTIME_DIR` or /run/user/UID.
pub fn socket_path() -> String {
    let variable = |name| env::var(name).ok().filter(|value| !value.is_empty());
    variable("WATCHWORD_SOCKET").unwrap_or_else(|| {
        let runtime = variable("XDG_RUNTIME_DIR").filter(|path| path.starts_with('/'));
        format!("{}/watchword/broker.sock", runtime.unwrap_or_else(|| format!("/run/user/{}", trust::own_user())))
    })
}

impl<A: FnMut(&Challenge) -> Answer> Watchword<A> {
    /// Connects to the broker. `answer` answers the challenges of this connection's fetches.
    pub fn connect(answer: A) -> Result<Watchword<A>, Error> { Watchword::connect_to(&socket_path(), "rust", answer) }

    /// Like `connect`, with the path of the socket, and the name of this program in prompts.
    pub fn connect_to(path: &str, name: &str, answer: A) -> Result<Watchword<A>, Error> {
        let stream = open(path)?;
        let writer = Arc::new(Mutex::new(stream.try_clone().map_err(Error::Io)?));
        let mut broker = Watchword {
            path: path.to_owned(), reader: BufReader::with_capacity(1 << 16, stream), writer, current: Arc::default(), answer,
            resolved: None, last: 0, begun: HashMap::new(), completed: HashMap::new(),
        };
        let capabilities = json!({"challenge": {"delivery": "request"}});
        let client = json!({"name": name, "version": VERSION});
        broker.call::<Value>("initialize", &json!({"client": client, "protocolVersion": 1, "capabilities": capabilities}))?;
        Ok(broker)
    }

    /// Sets a handler that gets the outcome of each answer before the fetch returns.
    pub fn on_resolved(&mut self, resolved: impl FnMut(&Resolved) + 'static) { self.resolved = Some(Box::new(resolved)); }

    /// Returns a `Canceller` for this connection.
    pub fn canceller(&self) -> Canceller { Canceller { writer: self.writer.clone(), current: self.current.clone() } }

    /// Makes a fetch and returns its whole body.
    pub fn fetch(&mut self, url: &str) -> Result<Response, Error> { self.run(&url.into()) }

    /// Like `fetch`, with a method, header fields, or other parameters.
    pub fn run(&mut self, request: &Request) -> Result<Response, Error> {
        let mut result: Value = self.call("fetch/run", &Wire(request))?;
        let body = decode(result["body"].take())?;
        let mut response: Response = decode(result)?;
        match body {
            Body::Handle { fetch_id } => self.read_all(&fetch_id, &mut response.body)?,
            inline => response.body = inline.bytes()?,
        }
        Ok(response)
    }

    /// Makes a fetch and writes its body to `sink` as it arrives. Returns an error if the body is incomplete.
    pub fn stream(&mut self, request: &Request, sink: &mut dyn Write) -> Result<Response, Error> {
        let started: Started = self.call("fetch/start", &Wire(request))?;
        self.finish(&started, sink)
    }

    /// Like `stream`, and sends `body` as the request body, on a thread of its own.
    pub fn upload(&mut self, request: &Request, body: &mut (dyn Read + Send), sink: &mut dyn Write) -> Result<Response, Error> {
        let mut request = request.clone();
        request.params.insert("body".to_owned(), json!({"type": "attach"}));
        let started: Started = self.call("fetch/start", &Wire(&request))?;
        let stream = attach(&self.path, &started.attach_token, "request")?.into_inner();
        let sending = stream.try_clone().map_err(Error::Io)?;
        let canceller = Canceller { writer: self.writer.clone(), current: Arc::new(Mutex::new(Some(cancel_fetch(&started)))) };
        thread::scope(|scope| {
            let sender = scope.spawn(move || send_body(body, sending, &canceller));
            let outcome = self.finish(&started, sink);
            let _ = stream.shutdown(Shutdown::Both);
            match sender.join() {
                Ok(Err(error)) => Err(Error::Io(error)),
                _ => outcome,
            }
        })
    }

    /// Writes the body of a fetch to `sink` and waits for its result.
    fn finish(&mut self, started: &Started, sink: &mut dyn Write) -> Result<Response, Error> {
        let name = &started.fetch_id;
        self.set_current(Some(cancel_fetch(started)));
        while !self.begun.contains_key(name) && !self.completed.contains_key(name) {
            self.receive()?;
        }
        if self.begun.remove(name).is_some() {
            if let Err(error) = self.read_all(name, sink) {
                if matches!(error, Error::Io(_)) {
                    let _ = self.call::<Value>("fetch/cancel", &json!({"fetchId": name}));
                }
                if !matches!(error, Error::Broker { .. }) {
                    return Err(error);
                }
            }
        }
        while !self.completed.contains_key(name) {
            self.receive()?;
        }
        self.set_current(None);
        let mut completed = self.completed.remove(name).unwrap_or_default();
        match completed.get_mut("error") {
            Some(error) => Err(Error::of(decode(error.take())?)),
            None => decode(completed),
        }
    }

    fn read_all(&mut self, name: &str, sink: &mut dyn Write) -> Result<(), Error> {
        loop {
            let part: Part = self.call("fetch/read", &json!({"fetchId": name, "maxBytes": 1 << 20}))?;
            sink.write_all(&part.data.bytes()?).map_err(Error::Io)?;
            if part.eof {
                return Ok(());
            }
        }
    }

    /// Calls any method of the protocol. Parameters and results can be types of the caller, or `serde_json::Value`.
    pub fn call<T: DeserializeOwned>(&mut self, method: &str, params: &impl Serialize) -> Result<T, Error> {
        #[derive(Serialize)]
        struct Call<'a, P> {
            id: u64,
            method: &'a str,
            params: &'a P,
        }
        self.last += 1;
        let id = self.last;
        if method == "fetch/run" {
            self.set_current(Some(json!({"method": "$/cancelRequest", "params": {"id": id}})));
        }
        self.send(&Call { id, method, params })?;
        loop {
            let message = self.receive()?;
            if message.method.is_none() && message.id == id {
                if method == "fetch/run" {
                    self.set_current(None);
                }
                return match message.error {
                    None => decode(message.result),
                    Some(error) => Err(Error::of(error)),
                };
            }
        }
    }

    fn set_current(&self, message: Option<Value>) { *self.current.lock().unwrap_or_else(|e| e.into_inner()) = message; }

    fn send(&self, message: &impl Serialize) -> Result<(), Error> {
        send(&self.writer, message).map_err(|_| Error::Closed { path: self.path.clone() })
    }

    /// Receives and handles the next message. Returns it without its parameters.
    fn receive(&mut self) -> Result<Message, Error> {
        let mut line = String::new();
        match self.reader.read_line(&mut line) {
            Ok(count) if count > 0 => {}
            _ => return Err(Error::Closed { path: self.path.clone() }),
        }
        let mut message: Message = serde_json::from_str(&line).map_err(Error::malformed)?;
        let params = message.params.take();
        match message.method.as_deref() {
            Some("auth/challenge") => {
                let answer = decode(params).map_or(Answer::Cancel, |challenge| (self.answer)(&challenge));
                self.reply(&message.id, &answer)?;
            }
            Some("auth/resolved") => {
                if let (Some(resolved), Ok(end)) = (&mut self.resolved, decode(params)) {
                    resolved(&end);
                }
            }
            Some("fetch/headers") => drop(self.begun.insert(fetch_id(&params), params)),
            Some("fetch/completed") => drop(self.completed.insert(fetch_id(&params), params)),
            Some(_) if !message.id.is_null() => {
                self.send(&json!({"id": message.id, "error": {"code": -32601, "message": "method not supported by this client"}}))?;
            }
            _ => {}
        }
        Ok(message)
    }

    fn reply(&self, id: &Value, answer: &Answer) -> Result<(), Error> {
        #[derive(Serialize)]
        struct Reply<'a> {
            id: &'a Value,
            result: Wire<'a, Answer>,
        }
        self.send(&Reply { id, result: Wire(answer) })
    }
}

fn decode<T: DeserializeOwned>(value: Value) -> Result<T, Error> { serde_json::from_value(value).map_err(Error::malformed) }

fn fetch_id(params: &Value) -> String { params["fetchId"].as_str().unwrap_or_default().to_owned() }

fn cancel_fetch(started: &Started) -> Value {
    // The reply matches no call and is ignored.
    json!({"id": "cancel", "method": "fetch/cancel", "params": {"fetchId": started.fetch_id}})
}

fn open(path: &str) -> Result<UnixStream, Error> {
    trust::check_directory(path)?;
    let stream = UnixStream::connect(path).map_err(|reason| Error::NotRunning { path: path.to_owned(), reason })?;
    trust::check_peer(&stream, path)?;
    Ok(stream)
}

fn send(writer: &Mutex<UnixStream>, message: &impl Serialize) -> std::io::Result<()> {
    writer.lock().unwrap_or_else(|e| e.into_inner()).write_all(&messages::line(message)?)
}

fn attach(path: &str, token: &str, side: &str) -> Result<BufReader<UnixStream>, Error> {
    let stream = open(path)?;
    let writer = Mutex::new(stream.try_clone().map_err(Error::Io)?);
    let closed = |_| Error::Closed { path: path.to_owned() };
    send(&writer, &json!({"id": 1, "method": "fetch/attach", "params": {"token": token, "side": side}})).map_err(closed)?;
    let mut reader = BufReader::new(stream);
    let mut line = String::new();
    reader.read_line(&mut line).map_err(closed)?;
    match serde_json::from_str::<Message>(&line).map_err(Error::malformed)?.error {
        None => Ok(reader),
        Some(error) => Err(Error::of(error)),
    }
}

/// Sends a request body. Returns only errors of `body`; the broker reports others at the end of the fetch.
fn send_body(body: &mut (dyn Read + Send), mut stream: UnixStream, canceller: &Canceller) -> std::io::Result<()> {
    let mut buffer = vec![0; 1 << 16];
    loop {
        match body.read(&mut buffer) {
            Ok(0) => break,
            Ok(count) => {
                if stream.write_all(&buffer[..count]).is_err() {
                    return Ok(());
                }
            }
            Err(error) => {
                canceller.cancel();
                return Err(error);
            }
        }
    }
    // Only the sending half is closed: a full close would look like a crash of this program.
    let _ = stream.shutdown(Shutdown::Write);
    Ok(())
}
