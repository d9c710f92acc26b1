import Foundation

/// A program that a test needs.
enum Program {
    private static let packages = [
        "softhsm2-util": "softhsm2", "pkcs11-tool": "opensc", "kinit": "krb5-user", "kdb5_util": "krb5-kdc",
        "kadmin.local": "krb5-admin-server",
    ]

    /// Runs it to its end, which must be a good one.
    static func run(_ command: [String], _ environment: [String: String] = [:], input: String = "") throws {
        let process = Process()
        let (inlet, outlet) = (Pipe(), Pipe())
        process.executableURL = URL(filePath: "/usr/bin/env")
        process.arguments = command
        process.environment = ProcessInfo.processInfo.environment.merging(environment) { $1 }
        process.environment?["PATH", default: ""] += ":/usr/sbin:/usr/bin"
        process.standardInput = inlet
        process.standardOutput = outlet
        process.standardError = outlet
        try process.run()
        try inlet.fileHandleForWriting.write(contentsOf: Data(input.utf8))
        try inlet.fileHandleForWriting.close()
        let said = try outlet.fileHandleForReading.readToEnd() ?? Data()
        process.waitUntilExit()
        guard process.terminationStatus == 0 else {
            let package = packages[command[0], default: command[0]]
            throw Failure(
                description: "\(command[0]) fails; is it there? apt-get install \(package)\n"
                    + String(decoding: said, as: UTF8.self))
        }
    }

    struct Failure: Error, CustomStringConvertible {
        let description: String
    }
}
