//! The connection that all calls share, and the thread that receives its messages.

use crate::messages::Message;
use crate::{decode, open, send, Error, Resolved};
use serde::Serialize;
use serde_json::{json, Value};
use std::collections::{HashMap, VecDeque};
use std::io::{BufRead, BufReader};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Mutex, MutexGuard, Weak};
use std::task::{Context, Waker};
use std::thread;

/// An event of one call.
pub(super) enum Event {
    Reply(Message),
    /// A challenge with the id of its request.
    Challenge(Value, Value),
    /// The broker expects no answer to this request.
    Withdrawn(Value),
    Closed,
}

/// The events of a call that its future has not taken.
#[derive(Default)]
struct Events {
    waiting: VecDeque<Event>,
    waker: Option<Waker>,
}

#[derive(Default)]
struct State {
    last: u64,
    calls: HashMap<u64, Events>,
    is_closed: bool,
}

type Resolve = Box<dyn FnMut(&Resolved) + Send>;

pub(super) struct Connection {
    path: String,
    writer: Mutex<UnixStream>,
    state: Mutex<State>,
    resolve: Mutex<Option<Resolve>>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> { mutex.lock().unwrap_or_else(|e| e.into_inner()) }

impl Connection {
    pub fn open(path: &str) -> Result<Arc<Connection>, Error> {
        let stream = open(path)?;
        let writer = Mutex::new(stream.try_clone().map_err(Error::Io)?);
        let connection = Arc::new(Connection { path: path.to_owned(), writer, state: Mutex::default(), resolve: Mutex::default() });
        let weak = Arc::downgrade(&connection);
        // The thread ends with the connection.
        thread::Builder::new().name("watchword".to_owned()).spawn(move || receive(stream, &weak)).map_err(Error::Io)?;
        Ok(connection)
    }

    pub fn on_resolved(&self, resolve: Resolve) { *lock(&self.resolve) = Some(resolve); }

    pub fn send(&self, message: &impl Serialize) -> Result<(), Error> { send(&self.writer, message).map_err(|_| self.closed()) }

    pub fn closed(&self) -> Error { Error::Closed { path: self.path.clone() } }

    /// Cancels a fetch whose body is not needed. The reply matches no call and is ignored.
    pub fn cancel_fetch(&self, name: &str) {
        let _ = self.send(&json!({"id": "cancel", "method": "fetch/cancel", "params": {"fetchId": name}}));
    }

    /// Returns the id of a new call.
    pub fn add(&self) -> u64 {
        let mut state = lock(&self.state);
        state.last += 1;
        let id = state.last;
        state.calls.insert(id, Events::default());
        id
    }

    /// Removes a call. Returns whether it had no reply.
    pub fn remove(&self, id: u64) -> bool { lock(&self.state).calls.remove(&id).is_some() }

    /// Returns the next event of a call. Without one, the task of `context` is woken when there is one.
    pub fn next(&self, id: u64, context: &Context<'_>) -> Option<Event> {
        let mut state = lock(&self.state);
        let is_closed = state.is_closed;
        let events = match state.calls.get_mut(&id) {
            Some(events) => events,
            None => return Some(Event::Closed),
        };
        let event = events.waiting.pop_front().or_else(|| is_closed.then_some(Event::Closed));
        if event.is_none() {
            events.waker = Some(context.waker().clone());
        } else if matches!(event, Some(Event::Reply(_))) {
            state.calls.remove(&id);
        }
        event
    }

    /// Adds an event to a call. Returns the event if there is no such call.
    fn add_event(&self, id: Option<u64>, event: Event) -> Result<(), Event> {
        let mut state = lock(&self.state);
        match id.and_then(|id| state.calls.get_mut(&id)) {
            Some(events) => {
                events.waiting.push_back(event);
                events.waker.take().map_or((), Waker::wake);
                Ok(())
            }
            None => Err(event),
        }
    }

    fn take(&self, mut message: Message) {
        let params = message.params.take();
        match message.method.as_deref() {
            None => {
                if let Err(Event::Reply(reply)) = self.add_event(message.id.as_u64(), Event::Reply(message)) {
                    // The call was cancelled after the broker had sent this reply.
                    reply.result["body"]["fetchId"].as_str().map_or((), |name| self.cancel_fetch(name));
                }
            }
            Some("auth/challenge") => {
                let event = Event::Challenge(message.id.clone(), params.clone());
                if self.add_event(params["requestId"].as_u64(), event).is_err() {
                    self.refuse(&message.id);
                }
            }
            Some("$/cancelRequest") => {
                let calls = lock(&self.state).calls.keys().copied().collect::<Vec<_>>();
                for call in calls {
                    let _ = self.add_event(Some(call), Event::Withdrawn(params["id"].clone()));
                }
            }
            Some("auth/resolved") => {
                if let (Some(resolve), Ok(end)) = (&mut *lock(&self.resolve), decode(params)) {
                    resolve(&end);
                }
            }
            Some(_) if !message.id.is_null() => self.refuse(&message.id),
            Some(_) => {}
        }
    }

    fn refuse(&self, id: &Value) {
        let _ = self.send(&json!({"id": id, "error": {"code": -32601, "message": "method not supported by this client"}}));
    }

    fn close(&self) {
        let mut state = lock(&self.state);
        state.is_closed = true;
        for events in state.calls.values_mut() {
            events.waker.take().map_or((), Waker::wake);
        }
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        let _ = lock(&self.writer).shutdown(Shutdown::Both);
    }
}

fn receive(stream: UnixStream, connection: &Weak<Connection>) {
    let mut reader = BufReader::with_capacity(1 << 16, stream);
    let mut line = String::new();
    while matches!(reader.read_line(&mut line), Ok(1..)) {
        match (serde_json::from_str(&line), connection.upgrade()) {
            (Ok(message), Some(connection)) => connection.take(message),
            _ => break,
        }
        line.clear();
    }
    if let Some(connection) = connection.upgrade() {
        connection.close();
    }
}
