//! Answers with a stored login, and prints the listed users, the outcome of the answer, and the body.

use watchword::{Answer, KnownUser, Outcome, Watchword};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let argument = std::env::args().nth(1).ok_or("a URL and a user")?;
    let (url, wanted) = argument.split_once(' ').ok_or("a user")?;
    let mut broker = Watchword::connect(|challenge| {
        let known = &challenge.known_users;
        let name = |one: &KnownUser| one.domain.iter().map(|domain| format!("{domain}\\")).collect::<String>() + &one.user;
        println!("known {}", known.iter().map(name).collect::<Vec<_>>().join(","));
        known.iter().find(|one| one.user == wanted).map_or(Answer::Cancel, Answer::stored)
    })?;
    broker.on_resolved(|end| {
        let outcome = if end.outcome == Some(Outcome::Accepted) { "accepted" } else { "not accepted" };
        println!("resolved {outcome} {}", end.user.as_deref().unwrap_or(""));
    });
    print!("body {}", String::from_utf8(broker.fetch(url)?.body)?);
    Ok(())
}
