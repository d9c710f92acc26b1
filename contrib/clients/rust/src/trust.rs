//! Whether a socket is that of this user's broker. One that another user has put there would receive passwords.

use crate::Error;
use std::fs;
use std::mem::size_of;
use std::os::raw::{c_int, c_void};
use std::os::unix::fs::MetadataExt;
use std::os::unix::io::AsRawFd;
use std::os::unix::net::UnixStream;
use std::path::Path;

/// As in unix(7).
#[repr(C)]
struct Credentials {
    pid: c_int,
    uid: u32,
    gid: u32,
}

const SOL_SOCKET: c_int = 1;
const SO_PEERCRED: c_int = 17;

// Of the C library, which the standard library uses; it has no stable names of its own for them.
extern "C" {
    fn geteuid() -> u32;
    fn getsockopt(socket: c_int, level: c_int, name: c_int, value: *mut c_void, length: *mut u32) -> c_int;
}

/// The effective user of this process.
pub fn own_user() -> u32 {
    // It cannot fail, and touches no memory.
    unsafe { geteuid() }
}

/// Before connecting: nobody else can replace the socket. A directory that does not exist is left to connect(2).
pub fn check_directory(path: &str) -> Result<(), Error> {
    let directory = match Path::new(path).parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    let facts = match fs::metadata(directory) {
        Ok(facts) => facts,
        Err(_) => return Ok(()),
    };
    let name = directory.display();
    if facts.uid() != 0 && facts.uid() != own_user() {
        return Err(not_trusted(path, format!("the directory {name} belongs to user {}", facts.uid())));
    }
    if facts.mode() & 0o022 != 0 {
        return Err(not_trusted(path, format!("the directory {name} can be written by other users (mode {:04o})", facts.mode() & 0o7777)));
    }
    Ok(())
}

/// After connecting and before anything is sent: the process that listens runs as this user (SO_PEERCRED, unix(7)).
pub fn check_peer(stream: &UnixStream, path: &str) -> Result<(), Error> {
    let mut peer = Credentials { pid: 0, uid: u32::MAX, gid: u32::MAX };
    let mut length = size_of::<Credentials>() as u32;
    // The kernel writes at most `length` bytes to `peer`, which has as many.
    let status = unsafe { getsockopt(stream.as_raw_fd(), SOL_SOCKET, SO_PEERCRED, (&mut peer as *mut Credentials).cast(), &mut length) };
    if status != 0 || length as usize != size_of::<Credentials>() {
        return Err(not_trusted(path, "the user who listens there is unknown".to_owned()));
    }
    if peer.uid != own_user() {
        return Err(not_trusted(path, format!("user {} listens there", peer.uid)));
    }
    Ok(())
}

fn not_trusted(path: &str, reason: String) -> Error { Error::NotTrusted { path: path.to_owned(), reason } }
