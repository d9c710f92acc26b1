import Glibc
import WatchwordProtocol

/// What the broker finds around it: libraries, certificates, Kerberos, memory, configuration.
struct EnvironmentCheck {
    var findings: [Finding] {
        [program, configuration, certificates, kerberos, memory]
    }

    // MARK: Programs and libraries

    /// That it says its version shows that all of its libraries are there.
    private var program: Finding {
        let name = "Libraries"
        guard let path = Program.find("watchwordd") else {
            return .bad(
                name, "watchwordd is neither beside this program nor in $PATH.",
                "Install it, or put its folder into $PATH.")
        }
        let (status, lines) = Program.run(path, ["--version"])
        let output = lines.joined(separator: " ")
        guard status == 0 else {
            return .bad(
                name, "\(path) does not start: \(output.shortened(to: 300))",
                "Install what it misses: libcurl4, libsecret-1-0, libjansson4, libssl3, libkrb5-3.")
        }
        return .good(name, "\(path) starts with all of them (\(output.shortened(to: 300))).")
    }

    private var configuration: Finding {
        let name = "Configuration"
        guard let path = ConfigurationLocation.path(environment: Environment.text) else {
            return .doubtful(name, "There is no place for one.", "Set $HOME or $XDG_CONFIG_HOME.")
        }
        guard access(path, F_OK) == 0 else { return .good(name, "There is none, and everything is at its default.") }
        guard let daemon = Program.find("watchwordd") else {
            return .doubtful(name, path, "watchwordd is not there to read it.")
        }
        let (status, lines) = Program.run(daemon, ["--check-config"])
        let output = lines.joined(separator: " ")
        return status == 0
            ? .good(name, "\(path) is in order.")
            : .bad(name, "\(path) has mistakes: \(output.shortened(to: 600))", "All of them: watchword config check")
    }

    // MARK: Network

    /// Where Debian's OpenSSL and libcurl look.
    private static let bundle = "/etc/ssl/certs/ca-certificates.crt"

    private var certificates: Finding {
        let name = "Certificates"
        guard access(Self.bundle, R_OK) == 0 else {
            return .bad(
                name, "\(Self.bundle) cannot be read: no server can be verified.",
                "Run: apt-get install ca-certificates")
        }
        guard let count = SmallFile.count(of: "-----BEGIN CERTIFICATE-----", in: Self.bundle), count > 0 else {
            return .bad(name, "\(Self.bundle) holds none.", "Run: update-ca-certificates --fresh")
        }
        return .good(name, "\(count) authorities are trusted (\(Self.bundle)).")
    }

    private var kerberos: Finding {
        let name = "Kerberos"
        guard let klist = Program.find("klist") else {
            return .good(name, "It is not installed (krb5-user); only servers with Negotiate need it.")
        }
        let (status, _) = Program.run(klist, ["-s"])
        if status == 0 {
            return .good(name, "You have a ticket that is valid. schemes.negotiate says which servers get one.")
        }
        guard access("/etc/krb5.conf", R_OK) == 0 else {
            return .good(name, "It is not set up here (/etc/krb5.conf); only servers with Negotiate need it.")
        }
        return .doubtful(name, "You have no valid ticket.", "Where servers want one (schemes.negotiate): run kinit.")
    }

    // MARK: Memory

    private var memory: Finding {
        let name = "Memory"
        // proc(5), /proc/PID/limits: in bytes.
        let line = SmallFile.text(of: "/proc/self/limits")?.split(separator: "\n").first {
            $0.hasPrefix("Max locked memory")
        }
        guard let value = line?.dropFirst("Max locked memory".count).split(separator: " ").first else {
            return .doubtful(name, "The limit of locked memory cannot be read.", "See ulimit -l.")
        }
        let limit = value == "unlimited" ? Int.max : Int(value) ?? 0
        guard limit >= 1 << 20 || geteuid() == 0 else {
            return .doubtful(
                name, "Only \(limit >> 10) KiB may be kept from swap; passwords beyond that are not remembered.",
                "Raise it to 8192 KiB: ulimit -l, or LimitMEMLOCK= of the unit.")
        }
        return .good(name, "Enough of it may be kept from swap.")
    }
}

/// The environment of this program.
enum Environment {
    static func text(_ name: String) -> String? { getenv(name).map { String(cString: $0) } }
}
