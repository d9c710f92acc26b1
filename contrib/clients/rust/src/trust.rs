//! Checks that a socket belongs to this user's broker: a process of another user would receive passwords.

use crate::Error;
use std::fs;
use std::mem::size_of;
use std::os::raw::{c_int, c_void};
use std::os::unix::fs::MetadataExt;
use std::os::unix::io::AsRawFd;
use std::os::unix::net::UnixStream;
use std::path::Path;

/// `struct ucred` of unix(7).
#[repr(C)]
struct Credentials {
    pid: c_int,
    uid: u32,
    gid: u32,
}

const SOL_SOCKET: c_int = 1;
const SO_PEERCRED: c_int = 17;

// Functions of the C library, which std links. std has no stable API for them.
extern "C" {
    fn geteuid() -> u32;
    fn getsockopt(socket: c_int, level: c_int, name: c_int, value: *mut c_void, length: *mut u32) -> c_int;
}

/// Returns the effective user id of this process.
pub fn own_user() -> u32 {
    // Safe: geteuid cannot fail, and accesses no memory of this process.
    unsafe { geteuid() }
}

/// Returns an error if other users could replace the socket. Called before connecting; a missing directory is reported by connect(2).
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

/// Returns an error unless the listening process runs as this user (SO_PEERCRED, unix(7)). Called before sending.
pub fn check_peer(stream: &UnixStream, path: &str) -> Result<(), Error> {
    let mut peer = Credentials { pid: 0, uid: u32::MAX, gid: u32::MAX };
    let mut length = size_of::<Credentials>() as u32;
    // Safe: the kernel writes at most `length` bytes, the size of `peer`.
    let status = unsafe { getsockopt(stream.as_raw_fd(), SOL_SOCKET, SO_PEERCRED, (&mut peer as *mut Credentials).cast(), &mut length) };
    if status != 0 || length as usize != size_of::<Credentials>() {
        return Err(not_trusted(path, "the user who listens there is unknown".to_owned()));
    }
    if peer.uid != own_user() { // guard: client-peer-rust
        return Err(not_trusted(path, format!("user {} listens there", peer.uid)));
    }
    Ok(())
}

fn not_trusted(path: &str, reason: String) -> Error { Error::NotTrusted { path: path.to_owned(), reason } }
