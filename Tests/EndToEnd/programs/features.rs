//! What the client for Rust can do beyond one fetch: says what came of it, a line each. Arguments: a site of rig/client_sites.py.

use std::io::{Read, Write};
use std::{env, fs, io, process, thread, time::Duration};
use watchword::json::Json;
use watchword::{Answer, Error, Response, Watchword};

struct Torn(bool);

impl Read for Torn {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.0 {
            return Err(io::Error::new(io::ErrorKind::Other, "the tape is torn"));
        }
        self.0 = true;
        buffer[0] = b'x';
        Ok(1)
    }
}

/// Keeps nothing after its first bytes: whoever writes into it is told so.
struct Full(Vec<u8>);

impl Write for Full {
    fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
        if self.0.is_empty() {
            self.0 = buffer.to_vec();
        }
        Err(io::Error::new(io::ErrorKind::Other, "full"))
    }

    fn flush(&mut self) -> io::Result<()> { Ok(()) }
}

fn kind(result: Result<Response, Error>) -> String {
    match result {
        Ok(_) => "nothing".to_owned(),
        Err(Error::Io(error)) => error.to_string(),
        Err(error) => error.kind().to_owned(),
    }
}

fn url(site: &str, path: &str) -> Json { Json::object([("url", format!("{site}{path}").as_str().into()), ("method", "PUT".into())]) }

fn get(site: &str, path: &str) -> Json { Json::object([("url", format!("{site}{path}").as_str().into())]) }

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let site = env::args().nth(1).ok_or("a site")?;
    let login = fs::read_to_string(env::var("LOGIN_FILE")?)?;
    let (user, password) = login.trim_end().split_once('\n').ok_or("two lines")?;
    let mut broker = Watchword::connect(|challenge| {
        if challenge.get("url").text().unwrap_or("").ends_with("/typo") {
            return Answer::Credential(Json::object([("type", "password".into()), ("user", user.into()), ("pasword", "x".into())]));
        }
        let is_first = challenge.get("previousFailureCount").integer() == Some(0);
        Answer::password(user, if is_first { "wrong" } else { password })
    })?;
    println!("typo {}", kind(broker.run(get(&site, "/typo"))));
    print!("wrongThenRight {}", String::from_utf8(broker.fetch(&format!("{site}/page"))?.body)?);
    let mut large = Vec::new();
    broker.stream(get(&site, "/large"), &mut large)?;
    fs::write("streamed", &large)?;
    let sent: Vec<u8> = (0..40u8).flat_map(|number| [number; 1 << 16]).collect();
    let mut told = Vec::new();
    broker.upload(url(&site, "/echo"), &mut sent.as_slice(), &mut told)?;
    println!("uploaded {}", Json::parse(&String::from_utf8(told)?)?.get("sha256").text().unwrap_or(""));
    println!("torn {}", kind(broker.upload(url(&site, "/open/echo"), &mut Torn(false), &mut Vec::new())));
    println!("short {}", kind(broker.stream(get(&site, "/short"), &mut Vec::new())));
    println!("nobody {}", kind(broker.run(get("http://127.0.0.1:1", "/"))));
    println!("full {}", kind(broker.stream(get(&site, "/slow"), &mut Full(Vec::new()))));
    let canceller = broker.canceller();
    let killer = thread::spawn(move || {
        // Nothing happens while nothing is waited for; the server knows when something is.
        for _ in 0..100 {
            thread::sleep(Duration::from_millis(50));
            canceller.cancel();
        }
    });
    println!("cancelled {}", kind(broker.run(get(&site, "/silent"))));
    println!("cancelledStream {}", kind(broker.stream(get(&site, "/silent"), &mut Vec::new())));
    drop(killer);
    process::exit(0)
}
