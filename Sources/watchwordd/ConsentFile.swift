import JSONText
import Logging
import WatchwordCore
import WatchwordProtocol

/// The file of permanent grants, as lines of JSON.
struct ConsentFile: ConsentPort {
    let file: StateFile

    /// Uses the file `grants`. Returns `nil` without a state directory.
    init?(environment: (String) -> String?, log: Logger) {
        guard let file = StateFile(named: "grants", environment: environment, log: log) else { return nil }
        self.file = file
    }

    func permanentConsents() -> [PermanentConsent] { file.entries(PermanentConsent.init(line:)) }

    func whenStored(_ completion: @escaping @Sendable (String?) -> Void) { file.whenWritten(completion) }

    func store(_ grants: [PermanentConsent]) {
        file.replace(
            heading: "Programs that may use your saved logins. Revoke with: watchword grants revoke",
            grants.map(\.line))
    }
}

extension PermanentConsent {
    /// Parses a line in the format of `line`. Returns `nil` if the line is malformed, or if subjects of its kind cannot
    /// have permanent grants.
    init?(line: String) {
        guard let json = try? JSON.parse(Array(line.utf8), limits: JSONLimits(depth: 4, values: 64)),
            let subject = json["subject"],
            let kind = subject["kind"]?.string.flatMap(Subject.Kind.init), let name = subject["name"]?.exactText,
            let space = try? ProtectionSpace(json["protectionSpace"])
        else { return nil }
        let known: Subject
        switch kind {
        case .flatpak, .snap, .apparmor: known = Subject(kind, name, isSandboxed: true)
        case .exe:
            guard let file = Subject.File(subject) else { return nil }
            let script = subject["script"].map { Subject.Script($0) }
            if script == .some(nil) { return nil }
            known = Subject(
                .exe, name, file: file, isSystemFile: true, isInterpreter: script != nil, script: script ?? nil)
        case .unit, .front, .unknown: return nil
        }
        self.init(subject: known, space: space, user: json["user"]?.exactText)
    }

    var line: String {
        let json: JSON = [
            "subject": [
                "kind": .string(subject.kind.rawValue), "name": subject.name.json,
                "changed": subject.file?.changedText, "inode": subject.file?.inodeText,
                "script": subject.script.map {
                    ["path": $0.path.json, "changed": $0.file.changedText, "inode": $0.file.inodeText]
                },
            ], "protectionSpace": space.json.adding(["realm": space.realm?.json ?? .null]), "user": user?.json,
        ]
        return String(decoding: json.serialized(), as: UTF8.self)
    }
}

/// The numbers are strings, because they exceed the integers that every JSON parser supports.
extension Subject.File {
    fileprivate init?(_ json: JSON) {
        guard let changed = json["changed"]?.string.flatMap({ Int64($0) }),
            let inode = json["inode"]?.string.flatMap({ UInt64($0) })
        else { return nil }
        self.init(inode: inode, changed: changed)
    }

    fileprivate var changedText: JSON { .string("\(changed)") }
    fileprivate var inodeText: JSON { .string("\(inode)") }
}

extension Subject.Script {
    fileprivate init?(_ json: JSON) {
        guard let path = json["path"]?.exactText, let file = Subject.File(json) else { return nil }
        self.init(path: path, file: file, isSystemFile: true)
    }
}
