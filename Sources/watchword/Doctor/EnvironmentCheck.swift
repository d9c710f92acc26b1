import Glibc
import WatchwordProtocol

/// Checks the environment of the broker: libraries, configuration, certificates, Kerberos, memory.
struct EnvironmentCheck {
    var findings: [Finding] {
        [program, configuration, certificates, kerberos, memory]
    }

    // MARK: Programs and libraries

    /// If the broker prints its version, the libraries that it is linked with are present. The check of the keyring loads the
    /// others.
    private var program: Finding {
        let name = "Libraries"
        guard let path = Program.find("watchwordd") else {
            return .bad(
                name, "watchwordd is neither beside this program nor in $PATH.",
                "Install it, or add its directory to $PATH.")
        }
        let (status, lines) = Program.run(path, ["--version"])
        let output = lines.joined(separator: " ")
        guard status == 0 else {
            return .bad(
                name, "\(path) does not start: \(output.shortened(to: 300))",
                "Install the missing libraries: libcurl4, libjansson4, libssl3, libkrb5-3.")
        }
        return .good(name, "\(path) starts (\(output.shortened(to: 300))).")
    }

    private var configuration: Finding {
        let name = "Configuration"
        guard let path = ConfigurationLocation.path(environment: Environment.text) else {
            return .doubtful(name, "Its path is unknown.", "Set $HOME or $XDG_CONFIG_HOME to an absolute path.")
        }
        guard access(path, F_OK) == 0 else {
            return .good(name, "No configuration file exists; all options have their defaults.")
        }
        guard let daemon = Program.find("watchwordd") else {
            return .doubtful(name, "\(path) was not checked.", "Install watchwordd, which checks it.")
        }
        let (status, lines) = Program.run(daemon, ["--check-config"])
        let output = lines.joined(separator: " ")
        return status == 0
            ? .good(name, "\(path) is valid.")
            : .bad(name, "\(path) has errors: \(output.shortened(to: 600))", "Show all errors: watchword config check")
    }

    // MARK: Network

    /// The certificate authorities that OpenSSL and libcurl use on Debian.
    private static let bundle = "/etc/ssl/certs/ca-certificates.crt"

    private var certificates: Finding {
        let name = "Certificates"
        guard access(Self.bundle, R_OK) == 0 else {
            return .bad(
                name, "\(Self.bundle) cannot be read, so no server can be verified.",
                "Run: apt-get install ca-certificates")
        }
        guard let count = SmallFile.count(of: "-----BEGIN CERTIFICATE-----", in: Self.bundle), count > 0 else {
            return .bad(name, "\(Self.bundle) contains no certificate.", "Run: update-ca-certificates --fresh")
        }
        return .good(name, "\(count) authorities are trusted (\(Self.bundle)).")
    }

    private var kerberos: Finding {
        let name = "Kerberos"
        guard let klist = Program.find("klist") else {
            return .good(name, "It is not installed (package krb5-user). Only servers that use Negotiate need it.")
        }
        let (status, _) = Program.run(klist, ["-s"])
        if status == 0 {
            return .good(name, "You have a valid ticket. It is used for the hosts in schemes.negotiate.")
        }
        guard access("/etc/krb5.conf", R_OK) == 0 else {
            return .good(name, "It is not configured (/etc/krb5.conf). Only servers that use Negotiate need it.")
        }
        return .doubtful(name, "You have no valid ticket.", "To log in to the hosts in schemes.negotiate, run: kinit")
    }

    // MARK: Memory

    private var memory: Finding {
        let name = "Memory"
        // proc(5), /proc/PID/limits: in bytes.
        let line = SmallFile.text(of: "/proc/self/limits")?.split(separator: "\n").first {
            $0.hasPrefix("Max locked memory")
        }
        guard let value = line?.dropFirst("Max locked memory".count).split(separator: " ").first else {
            return .doubtful(name, "The limit for locked memory cannot be read.", "Check it with: ulimit -l")
        }
        let limit = value == "unlimited" ? Int.max : Int(value) ?? 0
        guard limit >= 1 << 20 || geteuid() == 0 else {
            return .doubtful(
                name, "Only \(limit >> 10) KiB of memory can be locked; passwords that exceed this are not stored.",
                "Raise the limit to 8192 KiB: with ulimit -l, or LimitMEMLOCK= in the unit.")
        }
        return .good(name, "Enough memory can be locked.")
    }
}

/// The environment of this program.
enum Environment {
    static func text(_ name: String) -> String? { getenv(name).map { String(cString: $0) } }
}
