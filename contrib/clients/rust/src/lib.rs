//! A client for the Watchword broker, which fetches what needs a log-in. Standard library only.
//!
//! ```no_run
//! let mut broker = watchword::Watchword::connect(|_| watchword::Answer::password("bob", "…"))?;
//! let page = broker.fetch("https://intranet.example/report")?;
//! # Ok::<(), watchword::Error>(())
//! ```

mod base64;
mod error;
pub mod json;
mod trust;

pub use error::Error;
use json::Json;
use std::collections::HashMap;
use std::env;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Mutex};
use std::thread;

/// What a challenge is answered with.
#[derive(Clone)]
pub enum Answer {
    /// One attempt with it: an object with a `type`, as the protocol describes credentials.
    Credential(Json),
    /// No more authentication: the response that asked becomes the result, with its body.
    Continue,
    /// The fetch fails with `challengeCancelled`.
    Cancel,
    /// As though nobody had been asked here: what is stored, then an agent, else as `Continue`.
    Default,
    /// Not this scheme: ask with the next one that was offered.
    Reject,
}

/// A stored login that fits a challenge, to be answered with `Answer::stored`.
#[derive(Clone, Debug, PartialEq)]
pub struct KnownUser {
    pub id: String,
    pub user: String,
    /// The Windows domain, where the login has one apart from the user.
    pub domain: Option<String>,
    pub source: String,
}

impl KnownUser {
    /// Those that the parameters of `auth/challenge` list.
    pub fn all(challenge: &Json) -> Vec<KnownUser> {
        let text = |json: &Json, name| json.get(name).text().map(str::to_owned);
        let known = |one: &Json| {
            Some(KnownUser { id: text(one, "id")?, user: text(one, "user")?, domain: text(one, "domain"), source: text(one, "source")? })
        };
        challenge.get("knownUsers").list().iter().filter_map(known).collect()
    }
}

impl Answer {
    /// A stored login that the challenge lists: nobody has to type its password.
    pub fn stored(known: &KnownUser) -> Answer {
        Answer::Credential(Json::object([("type", "stored".into()), ("id", known.id.as_str().into())]))
    }

    pub fn password(user: &str, password: &str) -> Answer {
        Answer::Credential(Json::object([("type", "password".into()), ("user", user.into()), ("password", password.into())]))
    }

    fn json(self) -> Json {
        let action = match self {
            Answer::Credential(credential) => {
                return Json::object([("action", "credential".into()), ("credential", credential)]);
            }
            Answer::Continue => "continue",
            Answer::Cancel => "cancel",
            Answer::Default => "default",
            Answer::Reject => "reject",
        };
        Json::object([("action", action.into())])
    }
}

/// A response, whatever its status. `details` is all that the broker said of it.
#[derive(Debug)]
pub struct Response {
    pub status: i64,
    /// In the order in which they came; a name may come more than once.
    pub headers: Vec<(String, String)>,
    /// Empty where it was handed over in parts.
    pub body: Vec<u8>,
    pub details: Json,
}

/// Ends what the connection is waiting for, from another thread.
#[derive(Clone)]
pub struct Canceller {
    writer: Arc<Mutex<UnixStream>>,
    current: Arc<Mutex<Option<Json>>>,
}

impl Canceller {
    /// The call then returns the error `cancelled`. Without a call nothing happens.
    pub fn cancel(&self) {
        if let Some(message) = self.current.lock().unwrap_or_else(|e| e.into_inner()).clone() {
            let _ = send(&self.writer, message);
        }
    }
}

/// One connection, which does one thing at a time.
pub struct Watchword<A> {
    path: String,
    reader: BufReader<UnixStream>,
    writer: Arc<Mutex<UnixStream>>,
    /// How what is being waited for is cancelled.
    current: Arc<Mutex<Option<Json>>>,
    answer: A,
    resolved: Option<Box<dyn FnMut(&Json)>>,
    last: i64,
    begun: HashMap<String, Json>,
    completed: HashMap<String, Json>,
}

/// `$WATCHWORD_SOCKET`, else below `$XDG_RUNTIME_DIR`, else below /run/user/UID.
pub fn socket_path() -> String {
    let variable = |name| env::var(name).ok().filter(|value| !value.is_empty());
    variable("WATCHWORD_SOCKET").unwrap_or_else(|| {
        let runtime = variable("XDG_RUNTIME_DIR").filter(|path| path.starts_with('/'));
        format!("{}/watchword/broker.sock", runtime.unwrap_or_else(|| format!("/run/user/{}", trust::own_user())))
    })
}

impl<A: FnMut(&Json) -> Answer> Watchword<A> {
    /// `answer` is asked when a server is; it gets the parameters of `auth/challenge`.
    pub fn connect(answer: A) -> Result<Watchword<A>, Error> { Watchword::connect_to(&socket_path(), "rust", answer) }

    pub fn connect_to(path: &str, name: &str, answer: A) -> Result<Watchword<A>, Error> {
        let stream = open(path)?;
        let writer = Arc::new(Mutex::new(stream.try_clone().map_err(Error::Io)?));
        let mut broker = Watchword {
            path: path.to_owned(), reader: BufReader::with_capacity(1 << 16, stream), writer, current: Arc::default(), answer,
            resolved: None, last: 0, begun: HashMap::new(), completed: HashMap::new(),
        };
        let client = Json::object([("name", name.into())]);
        let challenge = Json::object([("delivery", "request".into())]);
        let capabilities = Json::object([("challenge", challenge)]);
        broker.call("initialize", Json::object([("client", client), ("protocolVersion", 1.into()), ("capabilities", capabilities)]))?;
        Ok(broker)
    }

    /// `resolved` is told how an answer ended, with the parameters of `auth/resolved`, before the fetch returns.
    pub fn on_resolved(&mut self, resolved: impl FnMut(&Json) + 'static) { self.resolved = Some(Box::new(resolved)); }

    /// For ending a call from another thread.
    pub fn canceller(&self) -> Canceller { Canceller { writer: self.writer.clone(), current: self.current.clone() } }

    /// One fetch, with its whole body.
    pub fn fetch(&mut self, url: &str) -> Result<Response, Error> { self.run(Json::object([("url", url.into())])) }

    /// As `fetch`, with all the parameters of `fetch/run`.
    pub fn run(&mut self, params: Json) -> Result<Response, Error> {
        let details = self.call("fetch/run", params)?;
        let body = details.get("body").clone();
        let mut whole = Vec::new();
        match body.get("fetchId").text() {
            Some(name) => self.read_all(name, &mut whole)?,
            None => whole = bytes(&body)?,
        }
        Ok(response(details, whole))
    }

    /// One fetch whose body goes into `sink`, in parts, as it comes. It was whole if there is no error.
    pub fn stream(&mut self, params: Json, sink: &mut dyn Write) -> Result<Response, Error> {
        let started = self.call("fetch/start", params)?;
        self.finish(&started, sink)
    }

    /// As `stream`; `body` is sent as the server takes it, on a thread of its own.
    pub fn upload(&mut self, params: Json, body: &mut (dyn Read + Send), sink: &mut dyn Write) -> Result<Response, Error> {
        let mut params = params;
        if let Json::Object(members) = &mut params {
            members.insert("body".to_owned(), Json::object([("type", "attach".into())]));
        }
        let path = self.path.clone();
        let started = self.call("fetch/start", params)?;
        let token = started.get("attachToken").text().unwrap_or("").to_owned();
        let stream = attach(&path, &token, "request")?.into_inner();
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

    /// Hands over the body of what was begun, and waits for its end.
    fn finish(&mut self, started: &Json, sink: &mut dyn Write) -> Result<Response, Error> {
        let name = started.get("fetchId").text().unwrap_or("").to_owned();
        *self.current.lock().unwrap_or_else(|e| e.into_inner()) = Some(cancel_fetch(started));
        while !self.begun.contains_key(&name) && !self.completed.contains_key(&name) {
            self.receive()?;
        }
        if self.begun.remove(&name).is_some() {
            if let Err(error) = self.read_all(&name, sink) {
                if matches!(error, Error::Io(_)) {
                    let _ = self.call("fetch/cancel", Json::object([("fetchId", name.as_str().into())]));
                }
                if !matches!(error, Error::Broker { .. }) {
                    return Err(error);
                }
            }
        }
        while !self.completed.contains_key(&name) {
            self.receive()?;
        }
        *self.current.lock().unwrap_or_else(|e| e.into_inner()) = None;
        let details = self.completed.remove(&name).unwrap_or(Json::Null);
        match details.get("error") {
            Json::Null => Ok(response(details, Vec::new())),
            error => Err(Error::of(error)),
        }
    }

    fn read_all(&mut self, name: &str, sink: &mut dyn Write) -> Result<(), Error> {
        loop {
            let part = self.call("fetch/read", Json::object([("fetchId", name.into()), ("maxBytes", (1 << 20).into())]))?;
            sink.write_all(&bytes(part.get("data"))?).map_err(Error::Io)?;
            if *part.get("eof") == Json::Bool(true) {
                return Ok(());
            }
        }
    }

    /// Any method of the protocol.
    pub fn call(&mut self, method: &str, params: Json) -> Result<Json, Error> {
        self.last += 1;
        let id = self.last;
        if method == "fetch/run" {
            let params = Json::object([("id", id.into())]);
            *self.current.lock().unwrap_or_else(|e| e.into_inner()) =
                Some(Json::object([("method", "$/cancelRequest".into()), ("params", params)]));
        }
        self.send(Json::object([("id", id.into()), ("method", method.into()), ("params", params)]))?;
        loop {
            let message = self.receive()?;
            if *message.get("method") == Json::Null && message.get("id").integer() == Some(id) {
                if method == "fetch/run" {
                    *self.current.lock().unwrap_or_else(|e| e.into_inner()) = None;
                }
                return match message.get("error") {
                    Json::Null => Ok(message.get("result").clone()),
                    error => Err(Error::of(error)),
                };
            }
        }
    }

    fn send(&self, message: Json) -> Result<(), Error> {
        send(&self.writer, message).map_err(|_| Error::Closed { path: self.path.clone() })
    }

    /// Deals with the next message, and returns it.
    fn receive(&mut self) -> Result<Json, Error> {
        let mut line = String::new();
        match self.reader.read_line(&mut line) {
            Ok(count) if count > 0 => {}
            _ => return Err(Error::Closed { path: self.path.clone() }),
        }
        let message = Json::parse(&line).map_err(Error::Protocol)?;
        let params = message.get("params");
        let name = || params.get("fetchId").text().unwrap_or("").to_owned();
        match message.get("method").text() {
            Some("auth/challenge") => {
                let answer = (self.answer)(params).json();
                self.send(Json::object([("id", message.get("id").clone()), ("result", answer)]))?;
            }
            Some("auth/resolved") => {
                if let Some(resolved) = &mut self.resolved {
                    resolved(params);
                }
            }
            Some("fetch/headers") => drop(self.begun.insert(name(), params.clone())),
            Some("fetch/completed") => drop(self.completed.insert(name(), params.clone())),
            Some(_) if *message.get("id") != Json::Null => {
                let error = Json::object([("code", (-32601).into()), ("message", "this client does not answer that".into())]);
                self.send(Json::object([("id", message.get("id").clone()), ("error", error)]))?;
            }
            _ => {}
        }
        Ok(message)
    }
}

fn cancel_fetch(started: &Json) -> Json {
    let params = Json::object([("fetchId", started.get("fetchId").clone())]);
    // Its reply belongs to no call, and is passed over.
    Json::object([("id", "cancel".into()), ("method", "fetch/cancel".into()), ("params", params)])
}

fn open(path: &str) -> Result<UnixStream, Error> {
    trust::check_directory(path)?;
    let stream = UnixStream::connect(path).map_err(|reason| Error::NotRunning { path: path.to_owned(), reason })?;
    trust::check_peer(&stream, path)?;
    Ok(stream)
}

fn send(writer: &Mutex<UnixStream>, mut message: Json) -> std::io::Result<()> {
    if let Json::Object(members) = &mut message {
        members.insert("jsonrpc".to_owned(), "2.0".into());
    }
    let mut line = String::new();
    message.write(&mut line);
    line.push('\n');
    writer.lock().unwrap_or_else(|e| e.into_inner()).write_all(line.as_bytes())
}

fn attach(path: &str, token: &str, side: &str) -> Result<BufReader<UnixStream>, Error> {
    let stream = open(path)?;
    let writer = Mutex::new(stream.try_clone().map_err(Error::Io)?);
    let params = Json::object([("token", token.into()), ("side", side.into())]);
    let closed = |_| Error::Closed { path: path.to_owned() };
    send(&writer, Json::object([("id", 1.into()), ("method", "fetch/attach".into()), ("params", params)])).map_err(closed)?;
    let mut reader = BufReader::new(stream);
    let mut line = String::new();
    reader.read_line(&mut line).map_err(closed)?;
    let reply = Json::parse(&line).map_err(Error::Protocol)?;
    match reply.get("error") {
        Json::Null => Ok(reader),
        error => Err(Error::of(error)),
    }
}

/// Only an error of `body` is one here: what the broker thinks of it comes with the end of the fetch.
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
    // The reading side stays open: a connection that is closed at once may be that of a program that has died.
    let _ = stream.shutdown(Shutdown::Write);
    Ok(())
}

fn bytes(body: &Json) -> Result<Vec<u8>, Error> {
    let value = body.get("value").text().unwrap_or("");
    if body.get("type").text() != Some("base64") {
        return Ok(value.as_bytes().to_vec());
    }
    base64::decode(value).ok_or_else(|| Error::Protocol("a body that is no base64".to_owned()))
}

fn response(details: Json, body: Vec<u8>) -> Response {
    let pair = |pair: &Json| Some((pair.list().first()?.text()?.to_owned(), pair.list().get(1)?.text()?.to_owned()));
    let headers = details.get("headers").list().iter().filter_map(pair).collect();
    Response { status: details.get("status").integer().unwrap_or(0), headers, body, details }
}
