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
    /// Whether the kernel confines the program more than other programs of the user.
    public let isSandboxed: Bool

    public init(
        _ kind: Kind, _ name: ExactText, file: File? = nil, isSystemFile: Bool = false, isInterpreter: Bool = false,
        isSandboxed: Bool = false
    ) {
        self.kind = kind
        self.name = name
        self.file = file
        self.isSystemFile = isSystemFile
        self.isInterpreter = isInterpreter
        self.isSandboxed = isSandboxed
    }

    /// An unidentified program, which may be sandboxed.
    public static let unknown = Subject(.unknown, "", isSandboxed: true)

    public var strength: Strength {
        switch kind {
        case .flatpak, .snap, .apparmor: .strong
        case .unit: .weak
        case .exe: isInterpreter || file == nil ? .none : .weak
        case .unknown: .none
        }
    }

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

    /// Whether a grant to this subject applies to `other`: both have the same name and the same program file.
    public func isSame(as other: Subject) -> Bool {
        strength != .none && kind == other.kind && name == other.name && file == other.file  // guard: consent-file
            && isSandboxed == other.isSandboxed
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
