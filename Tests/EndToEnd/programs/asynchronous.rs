//! Uses features of the asynchronous Rust client, and prints a line for each result. Arguments: a site of rig/clients.py.

use std::time::Duration;
use std::{env, fs, future};
use tokio::time::timeout;
use watchword::{Answer, AsyncWatchword, Error, Outcome, Request, Response};

fn kind(result: Result<Response, Error>) -> String { result.map_or_else(|error| error.kind().to_owned(), |page| page.status.to_string()) }

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let site = env::args().nth(1).ok_or("a site")?;
    let login = fs::read_to_string(env::var("LOGIN_FILE")?)?;
    let (user, password) = login.trim_end().split_once('\n').ok_or("two lines")?;
    let broker = AsyncWatchword::connect().await?;
    broker.on_resolved(|end| println!("resolved {}", end.outcome == Some(Outcome::Accepted)));
    let page = format!("{site}/page");
    // Each fetch is answered by its own function.
    let cancelled = broker.fetch(&page, |_| future::ready(Answer::Cancel)).await;
    let answered = broker.fetch(&page, |_| async { Answer::password(user, password) }).await;
    println!("own {} {}", kind(cancelled), kind(answered));
    let tasks = (0..20).map(|_| {
        let (broker, page) = (broker.clone(), page.clone());
        tokio::spawn(async move { broker.fetch(&page, |_| future::ready(Answer::Cancel)).await })
    });
    let mut statuses = Vec::new();
    for task in tasks.collect::<Vec<_>>() {
        statuses.push(kind(task.await?));
    }
    println!("atOnce {}", statuses.join(","));
    fs::write("streamed", broker.fetch(&format!("{site}/large"), |_| future::ready(Answer::Cancel)).await?.body)?;
    println!("refused {}", kind(broker.fetch("http://127.0.0.1:1/", |_| future::ready(Answer::Cancel)).await));
    println!("agent {}", kind(broker.fetch(&format!("{site}/open/refuse"), |_| future::ready(Answer::Default)).await));
    let silent = format!("{site}/silent");
    let dropped = timeout(Duration::from_millis(200), broker.fetch(&silent, |_| future::ready(Answer::Cancel))).await;
    println!("dropped {}", dropped.is_err());
    let mut request = Request::from(format!("{site}/slow").as_str());
    request.params.insert("maxInlineBodyBytes".to_owned(), 0.into());
    let (head, mut body) = broker.open(&request, |_| future::ready(Answer::Cancel)).await?;
    println!("streaming {} {}", head.status, String::from_utf8(body.next().await?.ok_or("no part")?)?);
    drop(body);
    println!("after {}", kind(broker.fetch(&page, |_| future::ready(Answer::Cancel)).await));
    Ok(())
}
