internal import WatchwordProtocol

/// The kernel's information about a process, from which its subject is derived.
///
/// This type performs no I/O. Its creator reads the information, and also records what it could not read.
struct SubjectFacts: Sendable, Equatable {
    /// The file `/.flatpak-info` in the root directory of the process.
    enum FlatpakInfo: Sendable, Equatable {
        case absent
        case text(String)
        /// The file exists or may exist, but cannot be read.
        case unreadable
    }

    /// The label of the process from the Linux security module.
    enum Label: Sendable, Equatable {
        /// No security module labels processes.
        case absent
        case text(String)
        case unreadable

        /// Returns the label that confines the program more: this one, of the process, or that of its socket.
        func or(_ ofSocket: Label) -> Label {
            switch (self, ofSocket) {
            case (_, .absent): self
            case (.absent, _), (_, .unreadable): ofSocket
            case (_, .text(let text)): SubjectFacts.confiningProfile(text) == nil ? self : ofSocket
            }
        }
    }

    struct Program: Sendable, Equatable {
        var path: String
        var file: Subject.File
        /// Whether the file belongs to root and only root may write to it.
        var isSystemFile: Bool
    }

    /// Whether all information certainly belongs to the process that connected.
    var isCertain = false
    /// The label of the process, or that of its socket (SO_PEERSEC).
    var label = Label.unreadable
    var flatpak = FlatpakInfo.unreadable
    /// The content of `/proc/PID/cgroup`; `nil` if it cannot be read.
    var cgroup: String?
    /// The program file; `nil` if the process does not allow reading it.
    var program: Program?

    /// The script of an interpreter; `nil` if it is not known.
    var script: Subject.Script?

    /// The subject. Any doubt leads to `unknown`, which requires consent for each use.
    var subject: Subject {
        guard isCertain else { return .unknown }  // guard: subject-in-doubt
        let profile: String?
        switch label {
        case .absent: profile = nil
        case .text(let text): profile = Self.confiningProfile(text)
        case .unreadable: return .unknown
        }
        // Checked first, because a Snap can create `/.flatpak-info` in its own root directory.
        if let profile, profile.hasPrefix("snap.") { return Subject(.snap, ExactText(profile), isSandboxed: true) }
        switch flatpak {
        case .unreadable: return .unknown  // guard: subject-flatpak-unreadable
        case .text(let text):
            return Self.flatpakApplication(text).map { Subject(.flatpak, ExactText($0), isSandboxed: true) } ?? .unknown
        case .absent: break
        }
        if let profile { return Subject(.apparmor, ExactText(profile), isSandboxed: true) }
        if let unit = cgroup.flatMap(Self.unit) { return Subject(.unit, ExactText(unit)) }
        guard let program else { return Subject(.unknown, "") }
        return Subject(
            .exe, ExactText(program.path), file: program.file, isSystemFile: program.isSystemFile,
            isInterpreter: Self.isInterpreter(program.path), script: script)
    }

    /// Returns the subject of all processes that have one socket open: any of them may use it. The most restricted one counts;
    /// in doubt the program is unknown.
    static func subject(ofHolders holders: [Subject]) -> Subject {
        let confined = holders.filter(\.isSandboxed)  // guard: subject-most-restricted
        let subjects = Set(confined.isEmpty ? holders : confined)
        if subjects.count == 1, let subject = subjects.first { return subject }  // guard: subject-of-several-holders
        return Subject(.unknown, "", isSandboxed: !confined.isEmpty || holders.isEmpty)
    }

    // MARK: Flatpak

    /// Returns the application of a Flatpak instance (flatpak-metadata(5)); `nil` if `text` is not in Flatpak's format.
    static func flatpakApplication(_ text: String) -> String? {
        var group = ""
        var values: [String: String] = [:]
        for line in text.split(whereSeparator: \.isNewline) {
            if line.hasPrefix("["), line.hasSuffix("]") {
                group = String(line.dropFirst().dropLast())
                continue
            }
            guard let equals = line.firstIndex(of: "=") else { continue }
            let key = "\(group)/\(line[..<equals])"
            // Another parser could use the other value of a repeated key.
            guard values[key] == nil else { return nil }
            values[key] = String(line[line.index(after: equals)...])
        }
        guard let name = values["Application/name"], let instance = values["Instance/instance-id"], !instance.isEmpty,
            isApplicationID(name)
        else { return nil }
        return name
    }

    /// Whether `name` follows the rules for D-Bus names: at least two elements of letters, digits, `_` and `-`.
    private static func isApplicationID(_ name: String) -> Bool {
        let elements = name.split(separator: ".", omittingEmptySubsequences: false)
        return name.utf8.count <= 255 && elements.count >= 2
            && elements.allSatisfy { element in
                guard let first = element.utf8.first, !(48...57).contains(first) else { return false }
                return element.utf8.allSatisfy { byte in
                    (48...57).contains(byte) || (65...90).contains(byte) || (97...122).contains(byte) || byte == 45
                        || byte == 95
                }
            }
    }

    // MARK: Labels and units

    /// Returns the profile of an AppArmor label, `name (mode)`, if the mode confines the process. Labels of other security
    /// modules have another form, for which the result is `nil`.
    static func confiningProfile(_ label: String) -> String? {
        guard label.hasSuffix(")"), let open = label.lastIndex(of: "("), label[..<open].hasSuffix(" ") else {
            return nil
        }
        let name = label[..<open].dropLast()
        let mode = label[open...].dropFirst().dropLast()
        return name.isEmpty || mode == "complain" || mode == "unconfined" ? nil : String(name)
    }

    /// Returns the unit of the user's service manager that contains the process: a service, or the scope of an application
    /// (systemd's "Desktop Environment Integration"). Returns `nil` for other scopes, which contain unrelated programs.
    static func unit(_ cgroup: String) -> String? {
        let paths = cgroup.split(separator: "\n").filter { $0.hasPrefix("0::") }
        guard paths.count == 1, let path = paths.first?.dropFirst(3) else { return nil }
        let parts = path.split(separator: "/")
        guard let manager = parts.firstIndex(where: { $0.hasPrefix("user@") && $0.hasSuffix(".service") }) else {
            return nil
        }
        let below = parts[(manager + 1)...]
        guard let unit = below.first(where: { $0.hasSuffix(".service") || $0.hasSuffix(".scope") }) else { return nil }
        if unit.hasSuffix(".service") { return String(unit) }
        guard unit.hasPrefix("app-"), unit.utf8.allSatisfy({ (33...126).contains($0) }) else { return nil }
        return applicationID(ofScope: unit.dropLast(".scope".count))
    }

    /// Returns the name of a scope `app[-launcher]-ApplicationID-RANDOM` without its last part, which differs for each start.
    private static func applicationID(ofScope name: Substring) -> String? {
        let parts = name.split(separator: "-", omittingEmptySubsequences: false)
        guard parts.count >= 3 else { return nil }
        return parts.dropLast().joined(separator: "-")
    }

    // MARK: Programs

    /// Whether `path` is an interpreter or launcher, which does not identify the program that it runs.
    static func isInterpreter(_ path: String) -> Bool {
        let file = path.split(separator: "/").last.map(String.init) ?? path
        let stem = String(file.prefix { !$0.isNumber && $0 != "." && $0 != "-" })
        return interpreters.contains(stem) || interpreters.contains(file)
    }

    private static let interpreters: Set<String> = [
        "awk", "bash", "beam", "bun", "busybox", "csh", "dash", "deno", "dotnet", "electron", "emacs", "env", "erl",
        "fish", "gawk", "gdb", "gjs", "guile",
        "java", "julia", "ksh", "ld", "lldb", "lua", "luajit", "mawk", "mksh", "mono", "nc", "ncat", "node", "nodejs",
        "nvim",
        "octave", "perl", "php", "pwsh", "pypy", "python", "qemu", "R", "racket", "ruby", "sbcl", "scala", "sh",
        "socat",
        "ssh", "sshd", "strace", "swift", "tcsh", "toybox", "xargs", "tclsh", "valgrind", "vim", "wine", "wish", "zsh",
    ]
}
