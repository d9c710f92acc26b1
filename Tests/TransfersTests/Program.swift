import Glibc
import TestServers

/// A program that a test needs.
enum Program {
    private static let packages = [
        "softhsm2-util": "softhsm2", "pkcs11-tool": "opensc", "kinit": "krb5-user", "kdb5_util": "krb5-kdc",
        "kadmin.local": "krb5-admin-server",
    ]

    /// Runs the program, which must exit with status 0.
    static func run(_ command: [String], _ environment: [String: String] = [:], input: String = "") throws {
        let path = getenv("PATH").map { String(cString: $0) } ?? ""
        let variables = ["PATH=\(path):/usr/sbin:/usr/bin"] + environment.map { "\($0)=\($1)" }
        let (status, text) = try ChildProcess.run(["/usr/bin/env"] + variables + command, input: input)
        guard status == 0 else {
            let package = packages[command[0], default: command[0]]
            throw Failure(
                description: "\(command[0]) fails; is it there? apt-get install \(package)\n"
                    + text)
        }
    }

    struct Failure: Error, CustomStringConvertible {
        let description: String
    }
}
