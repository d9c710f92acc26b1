/// The program behind a client, as far as the kernel identifies it.
public struct Subject: Sendable, Hashable {
    /// The source of the identification, the hardest to forge first.
    public enum Kind: String, Sendable, CaseIterable {
        /// The application of a Flatpak sandbox.
        case flatpak
        /// An AppArmor profile of a Snap.
        case snap
        /// Another confining AppArmor profile.
        case apparmor
        /// A service or an application of the user's service manager. A weak hint: every program of the user can start one.
        case unit
        /// The program file. A weak hint: a user who can run a program can also change its behaviour.
        case exe
        /// The programs behind a restricted front that have a consent of their own. The name is the URL of its site.
        case front
        case unknown
    }

    /// The identity of a program file, independent of its path.
    public struct File: Sendable, Hashable {
        public var inode: UInt64
        /// The time of the last change, in nanoseconds, because inode numbers are reused and files are overwritten in place.
        /// The device number is omitted, because it can differ after a reboot.
        public var changed: Int64

        public init(inode: UInt64, changed: Int64) {
            self.inode = inode
            self.changed = changed
        }
    }

    /// The script that an interpreter runs. A weak hint, which the process supplies itself, in its command line.
    public struct Script: Sendable, Hashable {
        /// The path without symbolic links.
        public var path: ExactText
        public var file: File
        /// Whether the script was started by its full path, and only root can write to the file, and decide which file has this
        /// path.
        public var isSystemFile: Bool

        public init(path: ExactText, file: File, isSystemFile: Bool) {
            self.path = path
            self.file = file
            self.isSystemFile = isSystemFile
        }

        func isSame(as other: Script) -> Bool { path == other.path && file == other.file }
    }

    /// The reliability of the name, which limits how long a grant may last.
    public enum Strength: String, Sendable, CaseIterable {
        /// Any program can have this name: a grant lasts for one fetch only.
        case none
        /// Other programs of the user can take the name.
        case weak
        /// The kernel prevents other programs from taking the name.
        case strong
    }

    public let kind: Kind
    /// The name, unique within its kind; empty for `unknown`.
    public let name: ExactText
    /// The program file; only for `exe`.
    public let file: File?
    /// Whether the program file belongs to the system, so that the user's other programs cannot change it.
    public let isSystemFile: Bool
    /// Whether the program is an interpreter that runs any script: python, node, a shell.
    public let isInterpreter: Bool
    /// The script that the interpreter runs, if it can be identified; only for `exe`.
    public var script: Script?
    /// Whether the kernel confines the program more than other programs of the user.
    public let isSandboxed: Bool

    public init(
        _ kind: Kind, _ name: ExactText, file: File? = nil, isSystemFile: Bool = false, isInterpreter: Bool = false,
        script: Script? = nil, isSandboxed: Bool = false
    ) {
        self.kind = kind
        self.name = name
        self.file = file
        self.isSystemFile = isSystemFile
        self.isInterpreter = isInterpreter
        self.script = script
        self.isSandboxed = isSandboxed
    }

    /// An unidentified program, which may be sandboxed.
    public static let unknown = Subject(.unknown, "", isSandboxed: true)

    public var strength: Strength {
        switch kind {
        case .flatpak, .snap, .apparmor: .strong
        case .unit, .front: .weak
        case .exe: file == nil || (isInterpreter && !hasSystemScript) ? .none : .weak
        case .unknown: .none
        }
    }

    /// Whether other programs of the user can change neither the interpreter nor its script.
    private var hasSystemScript: Bool { isSystemFile && script?.isSystemFile == true }  // guard: script-of-the-system

    /// The consents that may be given to the program, the shortest first.
    public var allowedConsents: [Consent] {
        switch strength {
        case .none: [.once]
        case .weak: kind == .exe && isSystemFile ? [.once, .session, .always] : [.once, .session]
        case .strong: [.once, .session, .always]
        }
    }

    /// The subject as text: `flatpak:org.gnome.Maps`, `exe:/usr/bin/mytool`, `unknown`.
    public var text: ExactText { kind == .unknown ? ExactText(kind.rawValue) : "\(kind.rawValue):\(name)" }

    /// Whether a process that had this subject when it connected, and has the subject `now`, can be the same program. The time
    /// of the last change is not compared, because the file may have been replaced since then.
    public func couldStillBe(_ now: Subject) -> Bool {
        kind == now.kind && name == now.name && file?.inode == now.file?.inode
            && isSandboxed == now.isSandboxed
    }

    /// Returns this subject, without its script if the process does not certainly run it `now`.
    public func confirmed(by now: Subject) -> Subject {
        var subject = self
        if script != now.script { subject.script = nil }
        return subject
    }

    /// Whether a grant to this subject applies to `other`: both have the same name and the same program file.
    public func isSame(as other: Subject) -> Bool {
        strength != .none && kind == other.kind && name == other.name && file == other.file  // guard: consent-file
            && isSandboxed == other.isSandboxed && hasSameScript(as: other) && other.strength != .none
    }

    private func hasSameScript(as other: Subject) -> Bool {
        switch (script, other.script) {
        case (nil, nil): true
        case (let own?, let other?): own.isSame(as: other)
        default: false
        }
    }
}

/// A person's decision whether a program may use a stored credential.
public enum Consent: String, Sendable, CaseIterable {
    /// For one fetch.
    case once
    /// Until the session is cleared.
    case session
    /// Until it is revoked.
    case always
    case no
}
