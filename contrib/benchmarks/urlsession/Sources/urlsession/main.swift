// Makes N GETs of one URL with URLSession, CONCURRENT at a time; the delegate answers challenges with the login.
//   swift build -c release --static-swift-stdlib && .build/release/urlsession URL N CONCURRENT [USER PASSWORD]
import Dispatch
import Foundation
import FoundationNetworking

/// The session delegate, which starts the next fetch when one has ended. Its variables are used only on the delegate queue.
final class Fetches: NSObject, URLSessionDataDelegate, @unchecked Sendable {
    let url: URL, count: Int, login: URLCredential?
    let end = DispatchSemaphore(value: 0)
    var started = 0, ended = 0, wrong = 0, challenges = 0

    init(_ url: URL, count: Int, login: URLCredential?) { (self.url, self.count, self.login) = (url, count, login) }

    func startNext(in session: URLSession) {
        guard started < count else { return }
        started += 1
        session.dataTask(with: url).resume()
    }

    func urlSession(
        _ session: URLSession, task: URLSessionTask, didReceive challenge: URLAuthenticationChallenge,
        completionHandler: @escaping (URLSession.AuthChallengeDisposition, URLCredential?) -> Void
    ) {
        challenges += 1
        completionHandler(
            login != nil && challenge.previousFailureCount == 0 ? .useCredential : .performDefaultHandling, login)
    }

    func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?) {
        if error != nil || (task.response as? HTTPURLResponse)?.statusCode != 200 { wrong += 1 }
        ended += 1
        if ended == count { end.signal() } else { startNext(in: session) }
    }
}

let words = CommandLine.arguments
let login = words.count > 5 ? URLCredential(user: words[4], password: words[5], persistence: .forSession) : nil
let fetches = Fetches(URL(string: words[1])!, count: Int(words[2])!, login: login)
let queue = OperationQueue()
queue.maxConcurrentOperationCount = 1
let configuration = URLSessionConfiguration.ephemeral
configuration.urlCache = nil
configuration.httpMaximumConnectionsPerHost = 64
let session = URLSession(configuration: configuration, delegate: fetches, delegateQueue: queue)
let begin = DispatchTime.now()
queue.addOperation { for _ in 0..<Int(words[3])! { fetches.startNext(in: session) } }
guard fetches.end.wait(timeout: .now() + 300) == .success else { fatalError("stalled") }
let seconds = Double(DispatchTime.now().uptimeNanoseconds - begin.uptimeNanoseconds) / 1e9
print(
    "\(fetches.count) fetches: \(Int(Double(fetches.count) / seconds))/s, challenges \(fetches.challenges), errors \(fetches.wrong)"
)
exit(fetches.wrong == 0 ? 0 : 1)
