import Synchronization
import WatchwordCore

/// A fake of the PAC file's evaluator: each script is its own result, except for `<html>`, which is none, and `BUSY`.
final class FakeUpstreams: UpstreamPort {
    private let calls = Mutex<[String]>([])

    /// The URLs for which a script was evaluated, in order.
    var evaluated: [String] { calls.withLock { $0 } }

    func evaluate(
        _ script: PACScript, url: String, host: String,
        completion: @escaping @Sendable (Result<String, UpstreamFailure>) -> Void
    ) {
        calls.withLock { $0.append(url) }
        let text = String(decoding: script.bytes, as: UTF8.self)
        completion(text == "BUSY" ? .failure(UpstreamFailure("busy", isBusy: true)) : .success(text))
    }

    func check(_ script: PACScript, completion: @escaping @Sendable (Result<PACScript, UpstreamFailure>) -> Void) {
        completion(script.bytes == Array("<html>".utf8) ? .failure(UpstreamFailure("no script")) : .success(script))
    }

    func readScript(_ path: String, completion: @escaping @Sendable (Result<PACScript, UpstreamFailure>) -> Void) {
        completion(.failure(UpstreamFailure("no file")))
    }

    func readDesktop(completion: @escaping @Sendable (Result<DesktopProxy, UpstreamFailure>) -> Void) {
        completion(.failure(UpstreamFailure("no desktop")))
    }
}
