//! Answers with a stored login: says who is listed, how the answer ended, and what came.

use watchword::{Answer, KnownUser, Watchword};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let argument = std::env::args().nth(1).ok_or("a URL and a user")?;
    let (url, wanted) = argument.split_once(' ').ok_or("a user")?;
    let mut broker = Watchword::connect(|challenge| {
        let known = KnownUser::all(challenge);
        let name = |one: &KnownUser| one.domain.iter().map(|domain| format!("{domain}\\")).collect::<String>() + &one.user;
        println!("known {}", known.iter().map(name).collect::<Vec<_>>().join(","));
        known.iter().find(|one| one.user == wanted).map_or(Answer::Cancel, Answer::stored)
    })?;
    broker.on_resolved(|end| println!("resolved {} {}", end.get("outcome").text().unwrap_or(""), end.get("user").text().unwrap_or("")));
    print!("body {}", String::from_utf8(broker.fetch(url)?.body)?);
    Ok(())
}
