use super::*;
use std::future::pending;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixListener;
use std::pin::Pin;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{channel, Receiver};
use std::task::{Context, Poll, Wake, Waker};
use std::{env, fs, process, thread};

struct Unpark(thread::Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) { self.0.unpark(); }
}

fn block_on<T>(future: impl Future<Output = T>) -> T {
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    let mut future = Box::pin(future);
    loop {
        match future.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(value) => return value,
            Poll::Pending => thread::park(),
        }
    }
}

/// Polls once.
fn poll<T>(future: &mut Pin<Box<impl Future<Output = T>>>) -> Poll<T> {
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    future.as_mut().poll(&mut Context::from_waker(&waker))
}

/// A broker that sends one of `replies` after each message, in turn, and passes the messages on. Without a further reply, it closes
/// the connection.
fn scripted(replies: &[&str]) -> (AsyncWatchword, Receiver<Value>) {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    let folder = env::temp_dir().join(format!("ww-{}-{}", process::id(), NUMBER.fetch_add(1, Ordering::Relaxed)));
    fs::create_dir(&folder).unwrap();
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o700)).unwrap();
    let path = folder.join("s");
    let listener = UnixListener::bind(&path).unwrap();
    let replies: Vec<String> = [r#"{"id":1,"result":{}}"#].iter().chain(replies).map(|reply| reply.to_string()).collect();
    let (sender, receiver) = channel();
    thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut lines = BufReader::new(stream.try_clone().unwrap()).lines();
        for reply in replies {
            sender.send(serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap()).unwrap();
            stream.write_all(format!("{reply}\n").as_bytes()).unwrap();
        }
        // Passes on the rest without replies, until the client or the test ends.
        while let Some(Ok(line)) = lines.next() {
            if sender.send(serde_json::from_str(&line).unwrap()).is_err() {
                break;
            }
        }
    });
    let broker = block_on(AsyncWatchword::connect_to(path.to_str().unwrap(), "test")).unwrap();
    fs::remove_dir_all(&folder).unwrap();
    receiver.recv().unwrap();
    (broker, receiver)
}

/// A message without effect, for a turn in which the broker sends nothing.
const NOTHING: &str = r#"{"method":"events/other"}"#;
const CHALLENGE: &str = r#"{"id":7,"method":"auth/challenge","params":{"challengeId":"c","fetchId":"f","requestId":2,"url":"http://h/","method":"GET","protectionSpace":{"protocol":"http","host":"h","port":80,"realm":"Staff","authenticationMethod":"httpBasic","isProxy":false,"receivesCredentialSecurely":false},"previousFailureCount":0,"deadlineMs":1000}}"#;
const HANDLE: &str = r#"{"id":2,"result":{"body":{"type":"handle","fetchId":"f9"},"fetchId":"f9","status":200,"url":"http://h/","httpVersion":"HTTP/1.1","headers":[]}}"#;
const PAGE: &str = r#"{"id":2,"result":{"body":{"type":"string","value":"page"},"fetchId":"f","status":200,"url":"http://h/","httpVersion":"HTTP/1.1","headers":[]}}"#;

#[test]
fn a_challenge_is_answered_by_the_function_of_its_fetch() {
    let (broker, messages) = scripted(&[CHALLENGE, PAGE]);
    let page = block_on(broker.fetch("http://h/", |challenge| async move { Answer::password(challenge.url, "pw") })).unwrap();
    assert_eq!(page.body, b"page");
    let run = messages.recv().unwrap();
    assert_eq!((&run["params"]["auth"]["handler"]["delivery"], &run["id"]), (&json!("request"), &json!(2)));
    let answer = messages.recv().unwrap();
    assert_eq!((&answer["id"], &answer["result"]["credential"]["user"]), (&json!(7), &json!("http://h/")));
}

#[test]
fn a_dropped_future_cancels_its_call() {
    let (broker, messages) = scripted(&[NOTHING, HANDLE]);
    let mut fetch = Box::pin(broker.fetch("http://h/", |_| ready(Answer::Cancel)));
    assert!(poll(&mut fetch).is_pending());
    assert_eq!(messages.recv().unwrap()["method"], "fetch/run");
    drop(fetch);
    let cancel = messages.recv().unwrap();
    assert_eq!((&cancel["method"], &cancel["params"]["id"]), (&json!("$/cancelRequest"), &json!(2)));
    // The reply was on its way: its body is discarded.
    let cancel = messages.recv().unwrap();
    assert_eq!((&cancel["method"], &cancel["params"]["fetchId"]), (&json!("fetch/cancel"), &json!("f9")));
}

#[test]
fn a_withdrawn_challenge_drops_the_future_of_its_answer() {
    struct Noted(std::sync::mpsc::Sender<()>);
    impl Drop for Noted {
        fn drop(&mut self) { self.0.send(()).unwrap(); }
    }
    let withdrawal = format!("{}\n{PAGE}", r#"{"method":"$/cancelRequest","params":{"id":7}}"#);
    let (broker, messages) = scripted(&[CHALLENGE, &withdrawal]);
    let (sender, dropped) = channel();
    let mut asked = false;
    let mut fetch = Box::pin(broker.fetch("http://h/", |_| {
        let noted = Noted(sender.clone());
        asked = true;
        // The broker sends its next reply.
        broker.connection.cancel_fetch("other");
        async move {
            let _noted = noted;
            pending().await
        }
    }));
    let page = block_on(&mut fetch).unwrap();
    assert_eq!((page.body.as_slice(), dropped.try_recv()), (b"page".as_slice(), Ok(())));
    drop(fetch);
    assert!(asked);
    drop(broker);
    assert!(messages.iter().all(|message| message["id"] != 7));
}

#[test]
fn a_body_that_is_not_read_is_cancelled() {
    let (broker, messages) = scripted(&[HANDLE]);
    let (response, body) = block_on(broker.open(&"http://h/".into(), |_| ready(Answer::Cancel))).unwrap();
    assert_eq!(response.status, 200);
    drop(body);
    assert_eq!(messages.recv().unwrap()["method"], "fetch/run");
    assert_eq!(messages.recv().unwrap()["method"], "fetch/cancel");
}

#[test]
fn a_body_is_read_in_parts() {
    let part = |id: u8, text: &str, eof: bool| json!({"id": id, "result": {"data": {"type": "string", "value": text}, "eof": eof}}).to_string();
    let (broker, _messages) = scripted(&[HANDLE, &part(3, "ab", false), &part(4, "", true)]);
    assert_eq!(block_on(broker.fetch("http://h/", |_| ready(Answer::Cancel))).unwrap().body, b"ab");
}

#[test]
fn other_requests_are_refused() {
    let (broker, messages) = scripted(&[&format!("{}\n{PAGE}", CHALLENGE.replace(r#""requestId":2"#, r#""requestId":99"#))]);
    block_on(broker.fetch("http://h/", |_| ready(Answer::Cancel))).unwrap();
    messages.recv().unwrap();
    assert_eq!(messages.recv().unwrap()["error"]["code"], -32601);
}

#[test]
fn the_end_of_the_connection_ends_all_calls() {
    let (broker, _messages) = scripted(&["malformed"]);
    for _ in 0..2 {
        let failure = block_on(broker.fetch("http://h/", |_| ready(Answer::Cancel))).map(|page| page.status);
        assert!(matches!(failure, Err(Error::Closed { .. })), "{failure:?}");
    }
}
