//! A client for concurrent programs, on any executor: it needs no runtime.

mod calls;
mod connection;
#[cfg(test)]
mod tests;

use crate::credential::Wire;
use crate::messages::{Body, Part};
use crate::{decode, socket_path, Answer, Challenge, Error, Request, Resolved, Response, VERSION};
use calls::{Call, Fetching};
use connection::Connection;
use serde::de::DeserializeOwned;
use serde::Serialize;
use serde_json::{json, Value};
use std::future::{ready, Future};
use std::sync::Arc;

/// A connection that makes any number of calls at a time. Clones share it; it is closed with the last one.
///
/// A future that is dropped before its end cancels its call at the broker. Requests are sent by the thread that polls the future,
/// which is blocked until the broker has read them; the broker does that at once. Replies are read by a thread of the connection.
#[derive(Clone)]
pub struct AsyncWatchword {
    connection: Arc<Connection>,
}

impl AsyncWatchword {
    /// Connects to the broker.
    pub async fn connect() -> Result<AsyncWatchword, Error> { AsyncWatchword::connect_to(&socket_path(), "rust").await }

    /// Like `connect`, with the path of the socket, and the name of this program in prompts.
    pub async fn connect_to(path: &str, name: &str) -> Result<AsyncWatchword, Error> {
        let broker = AsyncWatchword { connection: Connection::open(path)? };
        let client = json!({"name": name, "version": VERSION});
        broker.call::<Value>("initialize", &json!({"client": client, "protocolVersion": 1, "capabilities": {}})).await?;
        Ok(broker)
    }

    /// Sets a handler that gets the outcome of each answer before the fetch returns. It runs on the thread of the connection.
    pub fn on_resolved(&self, resolved: impl FnMut(&Resolved) + Send + 'static) { self.connection.on_resolved(Box::new(resolved)); }

    /// Makes a fetch and returns its whole body. `answer` answers its challenges; with `Answer::Default`, an agent is asked.
    pub async fn fetch<A: Future<Output = Answer>>(&self, url: &str, answer: impl FnMut(Challenge) -> A) -> Result<Response, Error> {
        self.run(&url.into(), answer).await
    }

    /// Like `fetch`, with a method, header fields, or other parameters. A challenge that the broker withdraws drops the future of
    /// its answer.
    pub async fn run<A: Future<Output = Answer>>(
        &self, request: &Request, answer: impl FnMut(Challenge) -> A,
    ) -> Result<Response, Error> {
        let (mut response, mut body) = self.open(request, answer).await?;
        while let Some(part) = body.next().await? {
            response.body.extend(part);
        }
        Ok(response)
    }

    /// Makes a fetch, and returns when the response has begun, or with a short body when it is complete.
    pub async fn open<A: Future<Output = Answer>>(
        &self, request: &Request, answer: impl FnMut(Challenge) -> A,
    ) -> Result<(Response, ResponseBody), Error> {
        let call = Call::start(&self.connection, "fetch/run", &Wire(&with_handler(request)))?;
        let mut result = Fetching::new(call, answer).await?;
        let body = match decode(result["body"].take())? {
            Body::Handle { fetch_id } => ResponseBody { broker: self.clone(), inline: None, rest: Some(fetch_id) },
            inline => ResponseBody { broker: self.clone(), inline: Some(inline.bytes()?), rest: None },
        };
        Ok((decode(result)?, body))
    }

    /// Calls any method of the protocol. Parameters and results can be types of the caller, or `serde_json::Value`.
    pub async fn call<T: DeserializeOwned>(&self, method: &str, params: &impl Serialize) -> Result<T, Error> {
        let call = Call::start(&self.connection, method, params)?;
        decode(Fetching::new(call, |_| ready(Answer::Default)).await?)
    }
}

/// The body of a response, in parts. A slow reader slows the transfer down. If it is dropped before its end, the fetch is cancelled.
pub struct ResponseBody {
    broker: AsyncWatchword,
    inline: Option<Vec<u8>>,
    /// The fetch whose body has not been read to its end.
    rest: Option<String>,
}

impl ResponseBody {
    /// Returns the next part; `None` at the end of the body.
    pub async fn next(&mut self) -> Result<Option<Vec<u8>>, Error> {
        let name = match &self.rest {
            Some(name) => name,
            None => return Ok(self.inline.take().filter(|part| !part.is_empty())),
        };
        let part: Part = self.broker.call("fetch/read", &json!({"fetchId": name, "maxBytes": 1 << 20})).await?;
        if part.eof {
            self.rest = None;
        }
        let bytes = part.data.bytes()?;
        Ok(Some(bytes).filter(|bytes| !(part.eof && bytes.is_empty())))
    }
}

impl Drop for ResponseBody {
    fn drop(&mut self) {
        if let Some(name) = &self.rest {
            self.broker.connection.cancel_fetch(name);
        }
    }
}

/// Makes the function of this fetch the handler of its challenges, which then name the fetch.
fn with_handler(request: &Request) -> Request {
    let mut request = request.clone();
    let auth = request.params.entry("auth").or_insert_with(|| json!({}));
    if let Some(members) = auth.as_object_mut() {
        members.entry("handler").or_insert_with(|| json!({"delivery": "request"}));
    }
    request
}
