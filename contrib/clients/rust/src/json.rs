//! As much of JSON as the protocol needs. The crate has no dependencies, so that it builds without any registry.

use std::collections::BTreeMap;
use std::fmt::Write;

/// A value (RFC 8259). Numbers that are not integers of 64 bits are floating.
#[derive(Clone, Debug, PartialEq)]
pub enum Json {
    Null,
    Bool(bool),
    Integer(i64),
    Float(f64),
    Text(String),
    List(Vec<Json>),
    Object(BTreeMap<String, Json>),
}

const DEEPEST: usize = 64;

impl Json {
    /// An object of these members.
    pub fn object<const N: usize>(members: [(&str, Json); N]) -> Json {
        Json::Object(members.into_iter().map(|(name, value)| (name.to_owned(), value)).collect())
    }

    /// The member, or null.
    pub fn get(&self, name: &str) -> &Json {
        match self {
            Json::Object(members) => members.get(name).unwrap_or(&Json::Null),
            _ => &Json::Null,
        }
    }

    pub fn text(&self) -> Option<&str> {
        match self {
            Json::Text(text) => Some(text),
            _ => None,
        }
    }

    pub fn integer(&self) -> Option<i64> {
        match self {
            Json::Integer(number) => Some(*number),
            _ => None,
        }
    }

    pub fn list(&self) -> &[Json] {
        match self {
            Json::List(elements) => elements,
            _ => &[],
        }
    }

    /// Reads exactly one value; the error says at which byte it went wrong.
    pub fn parse(text: &str) -> Result<Json, String> {
        let mut reader = Reader { bytes: text.as_bytes(), at: 0 };
        let value = reader.value(0)?;
        reader.skip_blanks();
        if reader.at == text.len() { Ok(value) } else { Err(reader.wrong("the end")) }
    }

    pub(crate) fn write(&self, out: &mut String) {
        match self {
            Json::Null => out.push_str("null"),
            Json::Bool(value) => write!(out, "{value}").unwrap(),
            Json::Integer(value) => write!(out, "{value}").unwrap(),
            Json::Float(value) => write!(out, "{value:e}").unwrap(),
            Json::Text(text) => write_text(text, out),
            Json::List(elements) => write_all(elements.iter(), ('[', ']'), out, |element, out| element.write(out)),
            Json::Object(members) => write_all(members.iter(), ('{', '}'), out, |(name, value), out| {
                write_text(name, out);
                out.push(':');
                value.write(out);
            }),
        }
    }
}

impl From<&str> for Json {
    fn from(text: &str) -> Json { Json::Text(text.to_owned()) }
}

impl From<i64> for Json {
    fn from(number: i64) -> Json { Json::Integer(number) }
}

fn write_all<T>(items: impl Iterator<Item = T>, ends: (char, char), out: &mut String, write: impl Fn(T, &mut String)) {
    out.push(ends.0);
    for (number, item) in items.enumerate() {
        if number > 0 {
            out.push(',');
        }
        write(item, out);
    }
    out.push(ends.1);
}

fn write_text(text: &str, out: &mut String) {
    out.push('"');
    for character in text.chars() {
        match character {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\0'..='\x1f' => write!(out, "\\u{:04x}", character as u32).unwrap(),
            _ => out.push(character),
        }
    }
    out.push('"');
}

struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl Reader<'_> {
    fn wrong(&self, wanted: &str) -> String { format!("no JSON: byte {} is not {wanted}", self.at) }

    fn skip_blanks(&mut self) {
        while matches!(self.bytes.get(self.at), Some(b' ' | b'\t' | b'\r' | b'\n')) {
            self.at += 1;
        }
    }

    fn take(&mut self, byte: u8) -> bool {
        self.skip_blanks();
        let is_there = self.bytes.get(self.at) == Some(&byte);
        self.at += is_there as usize;
        is_there
    }

    fn value(&mut self, depth: usize) -> Result<Json, String> {
        if depth > DEEPEST {
            return Err(self.wrong("less deep"));
        }
        self.skip_blanks();
        match self.bytes.get(self.at) {
            Some(b'{') => self.object(depth),
            Some(b'[') => self.elements(depth),
            Some(b'"') => self.string().map(Json::Text),
            Some(b'-' | b'0'..=b'9') => self.number(),
            _ => self.word(),
        }
    }

    fn word(&mut self) -> Result<Json, String> {
        for (word, value) in [("null", Json::Null), ("true", Json::Bool(true)), ("false", Json::Bool(false))] {
            if self.bytes[self.at..].starts_with(word.as_bytes()) {
                self.at += word.len();
                return Ok(value);
            }
        }
        Err(self.wrong("a value"))
    }

    fn object(&mut self, depth: usize) -> Result<Json, String> {
        self.at += 1;
        let mut members = BTreeMap::new();
        if self.take(b'}') {
            return Ok(Json::Object(members));
        }
        loop {
            self.skip_blanks();
            let name = self.string()?;
            if !self.take(b':') {
                return Err(self.wrong("a colon"));
            }
            if members.insert(name, self.value(depth + 1)?).is_some() {
                return Err(self.wrong("behind members with different names"));
            }
            if self.take(b'}') {
                return Ok(Json::Object(members));
            }
            if !self.take(b',') {
                return Err(self.wrong("a comma, or the end of an object"));
            }
        }
    }

    fn elements(&mut self, depth: usize) -> Result<Json, String> {
        self.at += 1;
        let mut elements = Vec::new();
        if self.take(b']') {
            return Ok(Json::List(elements));
        }
        loop {
            elements.push(self.value(depth + 1)?);
            if self.take(b']') {
                return Ok(Json::List(elements));
            }
            if !self.take(b',') {
                return Err(self.wrong("a comma, or the end of a list"));
            }
        }
    }

    fn number(&mut self) -> Result<Json, String> {
        let start = self.at;
        while matches!(self.bytes.get(self.at), Some(b'-' | b'+' | b'.' | b'e' | b'E' | b'0'..=b'9')) {
            self.at += 1;
        }
        let text = std::str::from_utf8(&self.bytes[start..self.at]).unwrap_or("");
        if let Ok(integer) = text.parse() {
            return Ok(Json::Integer(integer));
        }
        text.parse().map(Json::Float).map_err(|_| self.wrong("behind a number"))
    }

    fn string(&mut self) -> Result<String, String> {
        if self.bytes.get(self.at) != Some(&b'"') {
            return Err(self.wrong("a string"));
        }
        self.at += 1;
        let mut text = String::new();
        loop {
            let start = self.at;
            while !matches!(self.bytes.get(self.at), None | Some(b'"' | b'\\' | 0..=0x1f)) {
                self.at += 1;
            }
            // What was read came as a `&str`, and is cut at ASCII characters.
            text.push_str(std::str::from_utf8(&self.bytes[start..self.at]).map_err(|_| self.wrong("UTF-8"))?);
            match self.bytes.get(self.at) {
                Some(b'"') => {
                    self.at += 1;
                    return Ok(text);
                }
                Some(b'\\') => text.push(self.escape()?),
                _ => return Err(self.wrong("a character of a string")),
            }
        }
    }

    fn escape(&mut self) -> Result<char, String> {
        self.at += 2;
        Ok(match self.bytes.get(self.at - 1) {
            Some(b'n') => '\n',
            Some(b't') => '\t',
            Some(b'r') => '\r',
            Some(b'b') => '\x08',
            Some(b'f') => '\x0c',
            Some(&byte @ (b'"' | b'\\' | b'/')) => byte as char,
            Some(b'u') => {
                let mut unit = self.unit()?;
                if (0xd800..0xdc00).contains(&unit) && self.bytes[self.at..].starts_with(b"\\u") {
                    self.at += 2;
                    let second = self.unit()?;
                    if !(0xdc00..0xe000).contains(&second) {
                        return Err(self.wrong("behind a pair of surrogates"));
                    }
                    unit = 0x10000 + ((unit - 0xd800) << 10) + (second - 0xdc00);
                }
                char::from_u32(unit).ok_or_else(|| self.wrong("behind a character"))?
            }
            _ => return Err(self.wrong("an escape")),
        })
    }

    fn unit(&mut self) -> Result<u32, String> {
        let digits = self.bytes.get(self.at..self.at + 4).and_then(|digits| std::str::from_utf8(digits).ok());
        let unit = digits.and_then(|digits| u32::from_str_radix(digits, 16).ok()).ok_or_else(|| self.wrong("four digits"))?;
        self.at += 4;
        Ok(unit)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_again() {
        let text = r#"{"a":[1,-2,true,null,"\u00e9\ud83d\ude00\"\\\n"],"b":{"c":1.5}}"#;
        let value = Json::parse(text).unwrap();
        let mut again = String::new();
        value.write(&mut again);
        assert_eq!(Json::parse(&again), Ok(value.clone()));
        assert_eq!(value.get("a").list()[4].text(), Some("\u{e9}\u{1f600}\"\\\n"));
    }

    #[test]
    fn what_is_no_json_is_refused() {
        let deep = "[".repeat(100);
        for text in ["", "{", "[1,]", "{\"a\":1,\"a\":1}", "\"\\ud800\"", "\"\\ud800\\u0041\"", "nul", "1 2", "\"\n\"", "-", "\"\\u00", deep.as_str()] {
            assert!(Json::parse(text).is_err(), "{text}");
        }
    }
}
