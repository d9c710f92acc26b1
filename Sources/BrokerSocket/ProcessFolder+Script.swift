internal import CPlatform
internal import Glibc
internal import WatchwordProtocol

/// The script that an interpreter runs.
extension ProcessFolder {
    /// The number of bytes of a command line that are read. Options precede the script, so it is near the beginning.
    private static let commandLineBytes = 16_384
    /// The number of slashes in both paths of a script above which only its name is used.
    private static let longestDepth = 64

    /// Returns the script of a process that runs the interpreter `program`, according to its command line. Returns `nil` if the
    /// process runs other code, if the file cannot be found, and for a process with a root directory of its own.
    ///
    /// The kernel does not read a command line from files, which could block. Paths are resolved only as far as the kernel has
    /// them cached, because their file system could be the client's own; the interpreter has just opened the script.
    func script(of program: String) -> Subject.Script? {
        guard let argument = ScriptArgument.find(in: beginning(of: "cmdline", Self.commandLineBytes), of: program),
            link("root") == "/"
        else { return nil }
        // The process may have changed its directory, so that another file has the path; see `isProtected` below.
        let isAbsolute = argument.hasPrefix("/")
        let root = openat(descriptor, "root", Int32(WATCHWORD_OPEN_AS_PATH) | O_DIRECTORY | O_CLOEXEC)
        defer { if root >= 0 { close(root) } }
        guard root >= 0, let mounts,
            let path = isAbsolute ? argument : link("cwd").map({ "\($0)/\(argument)" }),
            let found = status(of: path, in: root, mounts), found.status.st_mode & S_IFMT == S_IFREG,
            found.status.st_nlink > 0
        else { return nil }
        // Each directory costs a search of all mounts.
        let depth = (path + found.path).utf8.count { $0 == UInt8(ascii: "/") }
        let isProtected =
            isAbsolute && found.status.isSystemFile && depth <= Self.longestDepth
            && Self.folders(of: [path, found.path]).allSatisfy { folder in
                status(of: folder, in: root, mounts)?.status.isSystemFile ?? false
            }
        return Subject.Script(
            path: ExactText(found.path), file: found.status.identity, isSystemFile: isProtected)
    }

    /// Returns all directories above the paths.
    private static func folders(of paths: [String]) -> Set<String> {
        var folders: Set<String> = ["/"]
        for path in paths {
            var path = path[...]
            while let slash = path.lastIndex(of: "/"), slash > path.startIndex {
                path = path[..<slash]
                folders.insert(String(path))
            }
        }
        return folders
    }

    /// Returns the status of a file on a local file system, and its path without symbolic links; `nil` if it cannot be
    /// determined at once.
    private func status(of path: String, in root: Int32, _ mounts: MountTable) -> (status: stat, path: String)? {
        let file = watchword_open_cached(root, path)
        guard file >= 0 else { return nil }
        defer { close(file) }
        var status = stat()
        guard isOnLocalFileSystem(file, mounts: mounts), fstat(file, &status) == 0,
            let real = Self.link("/proc/self/fd/\(file)"), real.hasPrefix("/")
        else { return nil }
        return (status, real)
    }

    private func beginning(of name: String, _ limit: Int) -> [UInt8] {
        let file = openat(descriptor, name, O_RDONLY | O_CLOEXEC)
        guard file >= 0 else { return [] }
        defer { close(file) }
        return [UInt8](unsafeUninitializedCapacity: limit) { buffer, count in
            count = max(0, read(file, buffer.baseAddress, limit))
        }
    }
}

extension stat {
    /// Whether the file belongs to root and only root may write to it.
    var isSystemFile: Bool { st_uid == 0 && st_mode & 0o022 == 0 }

    var identity: Subject.File {
        let changed = Int64(st_ctim.tv_sec) &* 1_000_000_000 &+ Int64(st_ctim.tv_nsec)
        return Subject.File(inode: UInt64(st_ino), changed: changed)
    }
}
