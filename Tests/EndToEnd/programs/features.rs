//! Uses features of the Rust client beyond a single fetch, and prints a line for each result. Arguments: a site of rig/clients.py.

use std::io::{Read, Write};
use std::{env, fs, io, process, thread, time::Duration};
use serde_json::Value;
use watchword::{Answer, AuthenticationMethod, CredentialType, Error, Request, Response, Watchword};

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

/// A sink that fails after its first bytes.
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

fn put(site: &str, path: &str) -> Request { Request { method: "PUT".to_owned(), ..get(site, path) } }

fn get(site: &str, path: &str) -> Request { Request::from(format!("{site}{path}").as_str()) }

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let site = env::args().nth(1).ok_or("a site")?;
    let login = fs::read_to_string(env::var("LOGIN_FILE")?)?;
    let (user, password) = login.trim_end().split_once('\n').ok_or("two lines")?;
    let mut broker = Watchword::connect(|challenge| {
        assert_eq!(challenge.protection_space.method, AuthenticationMethod::HttpBasic);
        assert_eq!((challenge.offers[0].method.clone(), &challenge.accepts), (AuthenticationMethod::HttpBasic, &vec![CredentialType::Password]));
        if challenge.url.ends_with("/typo") {
            return Answer::password("u".repeat(5000), "x");
        }
        Answer::password(user, if challenge.previous_failure_count == 0 { "wrong" } else { password })
    })?;
    println!("typo {}", kind(broker.run(&get(&site, "/typo"))));
    print!("wrongThenRight {}", String::from_utf8(broker.fetch(&format!("{site}/page"))?.body)?);
    let mut large = Vec::new();
    broker.stream(&get(&site, "/large"), &mut large)?;
    fs::write("streamed", &large)?;
    let sent: Vec<u8> = (0..40u8).flat_map(|number| [number; 1 << 16]).collect();
    let mut told = Vec::new();
    broker.upload(&put(&site, "/echo"), &mut sent.as_slice(), &mut told)?;
    println!("uploaded {}", serde_json::from_slice::<Value>(&told)?["sha256"].as_str().unwrap_or(""));
    println!("torn {}", kind(broker.upload(&put(&site, "/open/echo"), &mut Torn(false), &mut Vec::new())));
    println!("short {}", kind(broker.stream(&get(&site, "/short"), &mut Vec::new())));
    println!("refused {}", kind(broker.run(&get("http://127.0.0.1:1", "/"))));
    println!("full {}", kind(broker.stream(&get(&site, "/slow"), &mut Full(Vec::new()))));
    let canceller = broker.canceller();
    let killer = thread::spawn(move || {
        // Repeated, because `cancel` has no effect while no call is active.
        for _ in 0..100 {
            thread::sleep(Duration::from_millis(50));
            canceller.cancel();
        }
    });
    println!("cancelled {}", kind(broker.run(&get(&site, "/silent"))));
    println!("cancelledStream {}", kind(broker.stream(&get(&site, "/silent"), &mut Vec::new())));
    drop(killer);
    process::exit(0)
}
