/// The program on whose behalf a client speaks, as far as the kernel tells it from others.
public struct Subject: Sendable, Hashable {
    /// From what it is known, the hardest to forge first.
    public enum Kind: String, Sendable, CaseIterable {
        /// The application of a Flatpak sandbox.
        case flatpak
        /// An AppArmor profile of a Snap.
        case snap
        /// Another AppArmor profile that is enforced.
        case apparmor
        /// A service or an application of the user's service manager. A hint: every program of the user can start one.
        case unit
        /// The program file. A hint: whoever may run a program may also change what it does.
        case exe
        case unknown
    }

    /// Which program file, whatever its name.
    public struct File: Sendable, Hashable {
        public var inode: UInt64
        /// When it was last changed, in nanoseconds: numbers are used again, and files are overwritten in their place. The
        /// device is left out: its number is another one after the next start.
        public var changed: Int64

        public init(inode: UInt64, changed: Int64) {
            self.inode = inode
            self.changed = changed
        }
    }

    /// How much the name can be relied on, and with that, how long a grant to it may last.
    public enum Strength: String, Sendable, CaseIterable {
        /// It stands for whatever runs next under that name: nothing is granted beyond one fetch.
        case none
        /// Other programs of the user can take its name.
        case weak
        /// The kernel keeps other programs from its name.
        case strong
    }

    public let kind: Kind
    /// Within its kind; empty for `unknown`.
    public let name: ExactText
    /// Only of `exe`.
    public let file: File?
    /// The program file belongs to the system: the user's other programs cannot change it.
    public let isOfSystem: Bool
    /// It runs whatever it is given: python, node, a shell.
    public let isInterpreter: Bool
    /// The kernel keeps it from what other programs of the user can do.
    public let isSandboxed: Bool

    public init(
        _ kind: Kind, _ name: ExactText, file: File? = nil, isOfSystem: Bool = false, isInterpreter: Bool = false,
        isSandboxed: Bool = false
    ) {
        self.kind = kind
        self.name = name
        self.file = file
        self.isOfSystem = isOfSystem
        self.isInterpreter = isInterpreter
        self.isSandboxed = isSandboxed
    }

    /// Nobody knows who it is; it may sit in a sandbox.
    public static let unknown = Subject(.unknown, "", isSandboxed: true)

    public var strength: Strength {
        switch kind {
        case .flatpak, .snap, .apparmor: .strong
        case .unit: .weak
        case .exe: isInterpreter || file == nil ? .none : .weak
        case .unknown: .none
        }
    }

    /// What a consent to it may be, the shortest first.
    public var allowedConsents: [Consent] {
        switch strength {
        case .none: [.once]
        case .weak: kind == .exe && isOfSystem ? [.once, .session, .always] : [.once, .session]
        case .strong: [.once, .session, .always]
        }
    }

    /// `flatpak:org.gnome.Maps`, `exe:/usr/bin/mytool`, `unknown`.
    public var text: ExactText { kind == .unknown ? ExactText(kind.rawValue) : "\(kind.rawValue):\(name)" }

    /// Whether a process that was this when it connected can be the same program still: its file may have been replaced.
    public func mayBeStill(_ now: Subject) -> Bool {
        kind == now.kind && name == now.name && file?.inode == now.file?.inode
            && isSandboxed == now.isSandboxed
    }

    /// Whether a grant to `self` is one to `other`: the same name, and the same file behind it.
    public func isSame(as other: Subject) -> Bool {
        strength != .none && kind == other.kind && name == other.name && file == other.file
            && isSandboxed == other.isSandboxed
    }
}

/// What a person says to the use of what is kept by a program.
public enum Consent: String, Sendable, CaseIterable {
    /// For one fetch.
    case once
    /// Until the session is forgotten.
    case session
    /// Until it is revoked.
    case always
    case no
}
