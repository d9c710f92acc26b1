/// What the kernel says of a process; the subject is concluded from it.
///
/// Without I/O: whoever reads it says how each reading went.
public struct SubjectFacts: Sendable, Equatable {
    /// `/.flatpak-info` as the process sees it.
    public enum FlatpakInfo: Sendable, Equatable {
        case absent
        case text(String)
        /// Something is there, or may be.
        case unreadable
    }

    /// What the security module calls the process.
    public enum Label: Sendable, Equatable {
        /// There is none that names processes.
        case absent
        case text(String)
        case unreadable
    }

    public struct Program: Sendable, Equatable {
        public var path: String
        public var file: Subject.File
        /// It belongs to root, and nobody else may write to it.
        public var isOfSystem: Bool

        public init(path: String, file: Subject.File, isOfSystem: Bool) {
            self.path = path
            self.file = file
            self.isOfSystem = isOfSystem
        }
    }

    /// The process that connected is the one that was looked at, from the first reading to the last.
    public var isCertain = false
    /// Of the socket's other end (SO_PEERSEC).
    public var label = Label.unreadable
    public var flatpak = FlatpakInfo.unreadable
    /// The lines of `/proc/PID/cgroup`; `nil` where they cannot be read.
    public var cgroup: String?
    /// `nil` where it cannot be read: the process keeps it to itself.
    public var program: Program?

    public init() {}

    /// Every doubt leads to `unknown`, which is asked about each time.
    public var subject: Subject {
        guard isCertain else { return .unknown }
        let profile: String?
        switch label {
        case .absent: profile = nil
        case .text(let text): profile = Self.confiningProfile(text)
        case .unreadable: return .unknown
        }
        // A Snap may show a file of that name to itself.
        if let profile, profile.hasPrefix("snap.") { return Subject(.snap, ExactText(profile), isSandboxed: true) }
        switch flatpak {
        case .unreadable: return .unknown
        case .text(let text):
            return Self.flatpakApplication(text).map { Subject(.flatpak, ExactText($0), isSandboxed: true) } ?? .unknown
        case .absent: break
        }
        if let profile { return Subject(.apparmor, ExactText(profile), isSandboxed: true) }
        if let unit = cgroup.flatMap(Self.unit) { return Subject(.unit, ExactText(unit)) }
        guard let program else { return Subject(.unknown, "") }
        return Subject(
            .exe, ExactText(program.path), file: program.file, isOfSystem: program.isOfSystem,
            isInterpreter: Self.isInterpreter(program.path))
    }

    // MARK: Flatpak

    /// The application of an instance (flatpak-metadata(5)); `nil` where it is not told as Flatpak tells it.
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
            // Whoever reads it in another order finds another application.
            guard values[key] == nil else { return nil }
            values[key] = String(line[line.index(after: equals)...])
        }
        guard let name = values["Application/name"], let instance = values["Instance/instance-id"], !instance.isEmpty,
            isApplicationID(name)
        else { return nil }
        return name
    }

    /// As in the D-Bus specification, of bus names: at least two elements, letters, digits, `_` and `-`.
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

    /// `name (mode)`, as AppArmor writes it, of any mode that keeps the process from something. A label of another security
    /// module has another form, and says nothing here.
    static func confiningProfile(_ label: String) -> String? {
        guard label.hasSuffix(")"), let open = label.lastIndex(of: "("), label[..<open].hasSuffix(" ") else {
            return nil
        }
        let name = label[..<open].dropLast()
        let mode = label[open...].dropFirst().dropLast()
        return name.isEmpty || mode == "complain" || mode == "unconfined" ? nil : String(name)
    }

    /// The unit of the user's service manager in which it runs: a service, or an application's scope (systemd's "Desktop
    /// Environment Integration"). Not the scope of a terminal, in which everything runs.
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

    /// `app[-launcher]-ApplicationID-RANDOM`: the last part differs from start to start.
    private static func applicationID(ofScope name: Substring) -> String? {
        let parts = name.split(separator: "-", omittingEmptySubsequences: false)
        guard parts.count >= 3 else { return nil }
        return parts.dropLast().joined(separator: "-")
    }

    // MARK: Programs

    /// What runs programs that others have written: its own name says nothing of them.
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
