import Foundation
import Keyring
import TestServers
import WatchwordCore

/// A message bus for one test, in its own folder. It does not activate services.
final class PrivateBus {
    struct NotStarted: Error { var what: String }

    let address: String
    let folder: URL
    private var processes: [ChildProcess] = []

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
        try launch(["dbus-daemon", "--config-file=\(configuration.path)", "--nofork", "--print-address"])
    }

    /// Terminates the started processes, the latest first, and removes the folder.
    func stop() {
        for process in processes.reversed() { process.end() }
        processes = []
        try? FileManager.default.removeItem(at: folder)
    }

    func end(_ process: ChildProcess) { process.end() }

    /// Terminates the bus daemon.
    func endBus() { processes.first?.end() }

    private var environment: [String: String] {
        [
            "PATH": "/usr/bin:/bin", "HOME": folder.path, "XDG_RUNTIME_DIR": folder.path, "LC_ALL": "C.UTF-8",
            "XDG_DATA_HOME": folder.appending(path: "data").path, "DBUS_SESSION_BUS_ADDRESS": address,
            "PYTHONDONTWRITEBYTECODE": "1",
        ]
    }

    /// Starts a program and waits for its first line of output.
    @discardableResult
    private func launch(_ command: [String]) throws -> ChildProcess {
        let process = try ChildProcess(command, environment: environment, output: .standardOutput)
        processes.append(process)
        if process.availableText().isEmpty { throw NotStarted(what: command.joined(separator: " ")) }
        return process
    }

    /// Runs a program until it exits.
    func run(_ command: [String], input: String = "") throws -> (status: Int32, output: String) {
        let (status, text) = try ChildProcess.run(
            command, environment: environment, input: input, output: .standardOutput)
        return (status, text)
    }

    // MARK: Services

    /// Starts gnome-keyring with an unlocked, empty default collection.
    @discardableResult
    func startGnomeKeyring() throws -> ChildProcess {
        let process = try ChildProcess(
            ["gnome-keyring-daemon", "--foreground", "--unlock", "--components=secrets"], environment: environment,
            input: "rig")
        processes.append(process)
        try waitForService()
        return process
    }

    /// gnome-keyring does not report when it is ready.
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
    func startRig(_ misbehaviour: String? = nil, items: [String] = []) throws -> ChildProcess {
        let script = URL(filePath: #filePath).deletingLastPathComponent()
            .appending(path: "../EndToEnd/rig/secret_service.py").path
        var command = ["/usr/bin/python3", script, "--log", logFile.path]
        if let misbehaviour { command += ["--misbehave", misbehaviour] }
        for item in items { command += ["--item", item] }
        return try launch(command)
    }

    private var logFile: URL { folder.appending(path: "calls") }

    /// The calls that services of the rig have received, as `interface.method path`.
    var calls: [String] {
        ((try? String(contentsOf: logFile, encoding: .utf8)) ?? "").split(separator: "\n").map(String.init)
    }

    func wasCalled(_ method: String) -> Bool { calls.contains { $0.contains(".\(method) ") } }

    /// Waits up to a minute: the caller may have timed out before.
    func waitForCall(_ method: String) async throws {
        for _ in 0..<6000 {
            if wasCalled(method) { return }
            try await Task.sleep(for: .milliseconds(10))
        }
        throw NotStarted(what: method)
    }
}
