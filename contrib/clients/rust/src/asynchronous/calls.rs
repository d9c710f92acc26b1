//! The future of a call, which also runs the futures of its answers.

use super::connection::{Connection, Event};
use crate::credential::Wire;
use crate::{decode, Answer, Challenge, Error};
use serde::Serialize;
use serde_json::{json, Value};
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

/// A call whose reply has not been taken. It is cancelled at the broker when it is dropped.
pub(super) struct Call {
    connection: Arc<Connection>,
    id: u64,
}

impl Call {
    pub fn start(connection: &Arc<Connection>, method: &str, params: &impl Serialize) -> Result<Call, Error> {
        #[derive(Serialize)]
        struct Members<'a, P> {
            id: u64,
            method: &'a str,
            params: &'a P,
        }
        let id = connection.add();
        if let Err(error) = connection.send(&Members { id, method, params }) {
            connection.remove(id);
            return Err(error);
        }
        Ok(Call { connection: connection.clone(), id })
    }

    fn reply(&self, id: &Value, answer: &Answer) -> Result<(), Error> {
        #[derive(Serialize)]
        struct Reply<'a> {
            id: &'a Value,
            result: Wire<'a, Answer>,
        }
        self.connection.send(&Reply { id, result: Wire(answer) })
    }
}

impl Drop for Call {
    fn drop(&mut self) {
        if self.connection.remove(self.id) {
            let _ = self.connection.send(&json!({"method": "$/cancelRequest", "params": {"id": self.id}}));
        }
    }
}

/// Waits for the reply to a call, and meanwhile for the answer to its challenge.
pub(super) struct Fetching<F, A> {
    call: Call,
    answer: F,
    /// The challenge that is being answered, by the id of its request. A fetch has one at a time.
    answering: Option<(Value, Pin<Box<A>>)>,
}

impl<F: FnMut(Challenge) -> A, A: Future<Output = Answer>> Fetching<F, A> {
    pub fn new(call: Call, answer: F) -> Fetching<F, A> { Fetching { call, answer, answering: None } }

    /// Handles one event. Returns the result of the call, if it is the last one.
    fn handle(&mut self, event: Event) -> Result<Option<Value>, Error> {
        match event {
            Event::Reply(message) => message.error.map_or(Ok(Some(message.result)), |error| Err(Error::of(error))),
            Event::Challenge(id, params) => {
                match decode(params) {
                    Ok(challenge) => self.answering = Some((id, Box::pin((self.answer)(challenge)))),
                    Err(_) => self.call.reply(&id, &Answer::Cancel)?,
                }
                Ok(None)
            }
            Event::Withdrawn(id) => {
                if matches!(&self.answering, Some((asked, _)) if *asked == id) {
                    self.answering = None;
                }
                Ok(None)
            }
            Event::Closed => Err(self.call.connection.closed()),
        }
    }
}

/// Neither the function nor the boxed future is pinned here.
impl<F, A> Unpin for Fetching<F, A> {}

impl<F: FnMut(Challenge) -> A, A: Future<Output = Answer>> Future for Fetching<F, A> {
    type Output = Result<Value, Error>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        loop {
            if let Some(event) = self.call.connection.next(self.call.id, context) {
                match self.handle(event) {
                    Ok(None) => continue,
                    Ok(Some(result)) => return Poll::Ready(Ok(result)),
                    Err(error) => return Poll::Ready(Err(error)),
                }
            }
            let (id, answer) = match &mut self.answering {
                Some((id, answering)) => match answering.as_mut().poll(context) {
                    Poll::Ready(answer) => (id.take(), answer),
                    Poll::Pending => return Poll::Pending,
                },
                None => return Poll::Pending,
            };
            self.answering = None;
            if let Err(error) = self.call.reply(&id, &answer) {
                return Poll::Ready(Err(error));
            }
        }
    }
}
