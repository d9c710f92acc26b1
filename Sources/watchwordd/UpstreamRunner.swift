import CPlatform
import Configuration
import Dispatch
import Glibc
import Synchronization
import WatchwordCore
import WatchwordProtocol

/// Evaluates PAC files and reads the settings of the desktop, on threads that may wait.
final class UpstreamRunner: UpstreamPort {
    /// A thread with a process that evaluates PAC files.
    private final class Lane: Sendable {
        let queue: DispatchQueue
        let evaluator = Mutex(ScriptEvaluator())
        let limit: Duration

        init(_ name: String, limit: Duration) {
            (queue, self.limit) = (DispatchQueue(label: "watchword.upstreams.\(name)"), limit)
        }
    }

    /// The most calls that wait.
    private static let longestQueue = 256

    private let files = DispatchQueue(label: "watchword.upstreams.files")
    private let quick = Lane("quick", limit: Limits.quickScriptEvaluation)
    /// The lane for evaluations that have taken too long in the other one, so that they delay no others there.
    private let slow = Lane("slow", limit: Limits.scriptEvaluation)
    private let waiting = Mutex(0)

    func evaluate(
        _ script: PACScript, url: String, host: String,
        completion: @escaping @Sendable (Result<String, UpstreamFailure>) -> Void
    ) {
        evaluate(script, "find \(url) \(host)\n", in: quick, completion)
    }

    func check(_ script: PACScript, completion: @escaping @Sendable (Result<PACScript, UpstreamFailure>) -> Void) {
        evaluate(script, nil, in: quick) { result in completion(result.map { _ in script }) }
    }

    func readScript(_ path: String, completion: @escaping @Sendable (Result<PACScript, UpstreamFailure>) -> Void) {
        perform(on: files, completion) {
            completion(Result { () throws(UpstreamFailure) in try PACScript(ScriptFile.read(path)) })
        }
    }

    func readDesktop(completion: @escaping @Sendable (Result<DesktopProxy, UpstreamFailure>) -> Void) {
        perform(on: files, completion) {
            completion(Result { () throws(UpstreamFailure) in try DesktopProxy(gsettings: DesktopSettings.read()) })
        }
    }

    /// Ends the processes that evaluate PAC files.
    func shutDown() { for lane in [quick, slow] { lane.evaluator.withLock { $0.end() } } }

    private func evaluate(
        _ script: PACScript, _ question: String?, in lane: Lane,
        _ completion: @escaping @Sendable (Result<String, UpstreamFailure>) -> Void
    ) {
        perform(on: lane.queue, completion) {
            let result = lane.evaluator.withLock { evaluator in
                Result { () throws(UpstreamFailure) in
                    try evaluator.evaluate(script, question, within: lane.limit)
                }
            }
            switch result {
            case .success(let text?): completion(.success(text))
            case .failure(let failure): completion(.failure(failure))
            case .success(nil) where lane === self.quick: self.evaluate(script, question, in: self.slow, completion)
            case .success(nil):
                completion(
                    .failure(
                        UpstreamFailure("the PAC file took longer than \(lane.limit) and was stopped; correct the file")
                    ))
            }
        }
    }

    /// Runs `work` after all earlier calls on the same queue. A call that has waited too long for them fails.
    private func perform<Value>(
        on queue: DispatchQueue, _ completion: @escaping @Sendable (Result<Value, UpstreamFailure>) -> Void,
        _ work: @escaping @Sendable () -> Void
    ) {
        let latest = ContinuousClock.now + Limits.scriptQueue
        let busy = UpstreamFailure(
            "too many evaluations of the PAC file are waiting; correct the file if it is slow", isBusy: true)
        let hasRoom = waiting.withLock { waiting in
            guard waiting < Self.longestQueue else { return false }
            waiting += 1
            return true
        }
        guard hasRoom else { return completion(.failure(busy)) }
        queue.async {
            defer { self.waiting.withLock { $0 -= 1 } }
            guard ContinuousClock.now < latest else { return completion(.failure(busy)) }
            work()
        }
    }
}

/// Reads a PAC file from the file system.
private enum ScriptFile {
    static func read(_ path: String) throws(UpstreamFailure) -> [UInt8] {
        do throws(CarefulFile.Failure) {
            let file = try CarefulFile(path, followsLinks: true)
            let status = file.status
            if [0, geteuid()].contains(status.st_uid), status.st_mode & 0o022 == 0 {
                return try file.contents(limit: PACScript.largestSize)
            }
        } catch {
            guard case .systemCall(let number) = error else {
                throw UpstreamFailure("the PAC file \(path) \(error.text)")
            }
            throw UpstreamFailure("cannot read the PAC file \(path): \(String(cString: strerror(number)))")
        }
        throw UpstreamFailure(
            "other users can change the PAC file \(path); check its contents and owner, then run: chmod go-w '\(path)'")
    }
}

/// Runs gsettings(1).
private enum DesktopSettings {
    private static let program = "/usr/bin/gsettings"
    private static let largestOutput = 64 << 10

    static func read() throws(UpstreamFailure) -> String {
        let words = [program, "list-recursively", "org.gnome.system.proxy"]
        let arguments = words.map { strdup($0) } + [nil]
        defer { for argument in arguments { free(argument) } }
        var (pid, output): (pid_t, Int32) = (0, -1)
        let error = watchword_start_command(program, arguments, &pid, &output)
        guard error == 0 else {
            throw UpstreamFailure("cannot run \(program) for proxy.desktop: \(String(cString: strerror(error)))")
        }
        defer {
            close(output)
            kill(-pid, SIGKILL)
            while waitpid(pid, nil, 0) < 0 && errno == EINTR {}
        }
        guard let text = readAll(output, by: .now + Limits.scriptEvaluation) else {
            throw UpstreamFailure("\(program) did not answer within \(Limits.scriptEvaluation)")
        }
        return text
    }

    private static func readAll(_ descriptor: Int32, by deadline: ContinuousClock.Instant) -> String? {
        var bytes: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: 4096)
        while bytes.count < largestOutput {
            var entry = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
            let left = (deadline - .now).wholeMilliseconds
            guard left > 0 else { return nil }
            guard poll(&entry, 1, Int32(clamping: left)) > 0 else { continue }
            let count = Glibc.read(descriptor, &buffer, buffer.count)
            guard count > 0 else { return String(decoding: bytes, as: UTF8.self) }
            bytes += buffer[..<count]
        }
        return nil
    }
}
