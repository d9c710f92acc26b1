import Foundation
import Keyring
import WatchwordCore

/// A message bus of one test, in a folder of its own, which starts no services by itself.
final class PrivateBus {
    struct NotStarted: Error { var what: String }

    let address: String
    let folder: URL
    private var processes: [Process] = []

    init() throws {
        folder = FileManager.default.temporaryDirectory.appending(path: "keyring-\(UUID().uuidString.prefix(8))")
        try FileManager.default.createDirectory(
            at: folder, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
        let configuration = folder.appending(path: "bus.conf")
        try """
        <!DOCTYPE busconfig PUBLIC "-//freedesktop//DTD D-Bus Bus Configuration 1.0//EN"
         "http://www.freedesktop.org/standards/dbus/1.0/busconfig.dtd">
        <busconfig><type>session</type><listen>unix:path=\(folder.path)/bus</listen><policy context="default">
        <allow send_destination="*" eavesdrop="true"/><allow eavesdrop="true"/><allow own="*"/></policy></busconfig>
        """.write(to: configuration, atomically: true, encoding: .utf8)
        address = "unix:path=\(folder.path)/bus"
        try launch(["dbus-daemon", "--config-file=\(configuration.path)", "--nofork", "--print-address"], input: nil)
    }

    /// Ends what was started, the latest first, and removes the folder.
    func stop() {
        for process in processes.reversed() { end(process) }
        processes = []
        try? FileManager.default.removeItem(at: folder)
    }

    func end(_ process: Process) {
        guard process.isRunning else { return }
        kill(process.processIdentifier, SIGKILL)
        // Foundation waits for the end of a socket that programs of other tests may have inherited.
        var ended = siginfo_t()
        waitid(P_PID, id_t(process.processIdentifier), &ended, WEXITED | WNOWAIT)
    }

    /// Ends the bus itself.
    func endBus() { processes.first.map(end) }

    private var environment: [String: String] {
        [
            "PATH": "/usr/bin:/bin", "HOME": folder.path, "XDG_RUNTIME_DIR": folder.path, "LC_ALL": "C.UTF-8",
            "XDG_DATA_HOME": folder.appending(path: "data").path, "DBUS_SESSION_BUS_ADDRESS": address,
            "PYTHONDONTWRITEBYTECODE": "1",
        ]
    }

    private func process(_ command: [String], input: Pipe?) -> Process {
        let process = Process()
        process.executableURL = URL(filePath: command[0].hasPrefix("/") ? command[0] : "/usr/bin/\(command[0])")
        process.arguments = Array(command.dropFirst())
        process.environment = environment
        process.standardInput = input ?? FileHandle.nullDevice
        process.standardError = FileHandle.nullDevice
        return process
    }

    /// Starts a program, and waits for its first line.
    @discardableResult
    private func launch(_ command: [String], input: Pipe?) throws -> Process {
        let output = Pipe()
        let process = process(command, input: input)
        process.standardOutput = output
        try process.run()
        processes.append(process)
        let line = output.fileHandleForReading.availableData
        if line.isEmpty { throw NotStarted(what: command.joined(separator: " ")) }
        return process
    }

    /// Runs a program to its end.
    func run(_ command: [String], input: String = "") throws -> (status: Int32, output: String) {
        let (standardInput, output) = (Pipe(), Pipe())
        let process = process(command, input: standardInput)
        process.standardOutput = output
        try process.run()
        try standardInput.fileHandleForWriting.write(contentsOf: Data(input.utf8))
        try standardInput.fileHandleForWriting.close()
        let data = try output.fileHandleForReading.readToEnd() ?? Data()
        process.waitUntilExit()
        return (process.terminationStatus, String(decoding: data, as: UTF8.self))
    }

    // MARK: Services

    /// Starts gnome-keyring with an unlocked, empty default collection.
    @discardableResult
    func startGnomeKeyring() throws -> Process {
        let input = Pipe()
        try input.fileHandleForWriting.write(contentsOf: Data("rig".utf8))
        try input.fileHandleForWriting.close()
        let process = process(
            ["gnome-keyring-daemon", "--foreground", "--unlock", "--components=secrets"], input: input)
        process.standardOutput = FileHandle.nullDevice
        try process.run()
        processes.append(process)
        try waitForService()
        return process
    }

    /// gnome-keyring does not say when it is ready.
    private func waitForService() throws {
        let question = [
            "dbus-send", "--session", "--print-reply=literal", "--dest=org.freedesktop.DBus", "/org/freedesktop/DBus",
            "org.freedesktop.DBus.NameHasOwner", "string:org.freedesktop.secrets",
        ]
        for _ in 0..<200 {
            if try run(question).output.contains("true") { return }
            Thread.sleep(forTimeInterval: 0.02)
        }
        throw NotStarted(what: "gnome-keyring-daemon")
    }

    /// Starts the service of the end-to-end tests' rig.
    @discardableResult
    func startRig(_ misbehaviour: String? = nil, items: [String] = []) throws -> Process {
        let script = URL(filePath: #filePath).deletingLastPathComponent()
            .appending(path: "../EndToEnd/rig/secret_service.py").path
        var command = ["/usr/bin/python3", script, "--log", logFile.path]
        if let misbehaviour { command += ["--misbehave", misbehaviour] }
        for item in items { command += ["--item", item] }
        return try launch(command, input: nil)
    }

    private var logFile: URL { folder.appending(path: "calls") }

    /// The calls that services of the rig have got, as `interface.method path`.
    var calls: [String] {
        ((try? String(contentsOf: logFile, encoding: .utf8)) ?? "").split(separator: "\n").map(String.init)
    }

    func wasCalled(_ method: String) -> Bool { calls.contains { $0.contains(".\(method) ") } }

    /// A minute: whoever was to call it may have given up before.
    func waitForCall(_ method: String) async throws {
        for _ in 0..<6000 {
            if wasCalled(method) { return }
            try await Task.sleep(for: .milliseconds(10))
        }
        throw NotStarted(what: method)
    }
}
