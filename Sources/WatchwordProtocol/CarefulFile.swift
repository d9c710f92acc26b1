public import Glibc

/// An open regular file, and what is known of it. Anything else at its path is refused without waiting for it. A symbolic link
/// is refused unless the caller follows links, and a file to be written is refused if it has another name (a hard link), because
/// the other name may be that of another file of the user.
///
/// The descriptor is closed with this value.
public struct CarefulFile: ~Copyable {
    public enum Failure: Error, Equatable {
        case systemCall(Int32)
        case symbolicLink
        case notRegular
        case hardLink
    }

    public let descriptor: Int32
    public let status: stat

    /// - Parameters:
    ///   - folder: the open directory in which `path` begins, unless it is absolute.
    ///   - flags: those of open(2), without those that this type adds.
    ///   - permissions: those of a new file.
    public init(
        _ path: String, in folder: Int32 = AT_FDCWD, _ flags: Int32 = O_RDONLY, permissions: mode_t = 0o600,
        followsLinks: Bool = false
    ) throws(Failure) {
        // guard: file-symbolic-link
        let careful = O_CLOEXEC | O_NONBLOCK | O_NOCTTY | (followsLinks ? 0 : O_NOFOLLOW)
        let descriptor = openat(folder, path, flags | careful, permissions)
        guard descriptor >= 0 else {
            throw errno == ELOOP && !followsLinks ? .symbolicLink : .systemCall(errno)
        }
        var status = stat()
        var failure: Failure?
        if fstat(descriptor, &status) != 0 {
            failure = .systemCall(errno)
        } else if status.st_mode & S_IFMT != S_IFREG {
            failure = .notRegular
        } else if flags & O_ACCMODE != O_RDONLY, status.st_nlink > 1 {  // guard: file-hard-link
            failure = .hardLink
        }
        if let failure {
            close(descriptor)
            throw failure
        }
        (self.descriptor, self.status) = (descriptor, status)
    }

    deinit { close(descriptor) }

    /// Keeps the file open, and returns its descriptor, which the caller closes.
    public consuming func release() -> Int32 {
        let descriptor = descriptor
        discard self
        return descriptor
    }
}

extension CarefulFile.Failure {
    /// What is wrong with the file, after its path: `is not a regular file`.
    public var text: String {
        switch self {
        case .systemCall(let error): "cannot be opened: \(String(cString: strerror(error)))"
        case .symbolicLink: "is a symbolic link; use the path of its target, or replace it with the file"
        case .notRegular: "is not a regular file; replace it with one"
        case .hardLink: "has another name (a hard link), and is not changed; remove one of the two names"
        }
    }
}

/// The owner and mode of a directory, as reported by stat(2), to decide whether other users can replace files in it.
public struct DirectoryPermissions: Equatable, Sendable {
    /// The relation of the directory to the socket.
    public enum Role: Sendable {
        /// The directory holds the socket.
        case holdsSocket
        /// The directory is an ancestor of the socket's directory. If it is sticky (like `/tmp`), other users can add files
        /// but cannot replace existing ones.
        case ancestor
    }

    private static let writableByOthers: UInt32 = 0o022
    private static let sticky: UInt32 = 0o1000

    public let owner: UInt32
    public let mode: UInt32

    public init(owner: UInt32, mode: UInt32) {
        self.owner = owner
        self.mode = mode
    }

    /// Returns why the user `uid` cannot trust a socket in this directory; `nil` if only that user and root can replace it.
    public func problem(uid: UInt32, as role: Role = .holdsSocket) -> String? {
        if owner != uid && owner != 0 { return "belongs to user \(owner)" }
        if mode & Self.writableByOthers == 0 { return nil }
        if role == .ancestor && mode & Self.sticky != 0 { return nil }
        return "can be written by other users (mode 0\(String(mode & 0o7777, radix: 8)))"
    }
}
