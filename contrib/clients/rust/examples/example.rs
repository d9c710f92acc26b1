use watchword::{Answer, Watchword};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let login = std::fs::read_to_string(std::env::var("LOGIN_FILE")?)?;
    let (user, password) = login.trim_end_matches('\n').split_once('\n').ok_or("LOGIN_FILE has two lines")?;
    let mut broker = Watchword::connect(|challenge| match challenge.previous_failure_count {
        0 => Answer::password(user, password),
        _ => Answer::Cancel,
    })?;
    let url = std::env::args().nth(1).ok_or("usage: example URL")?;
    let page = broker.fetch(&url)?;
    std::io::Write::write_all(&mut std::io::stdout(), &page.body)?;
    Ok(())
}
