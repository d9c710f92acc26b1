import ArgumentParser
import Glibc
import WatchwordClient
import WatchwordProtocol

/// Exit codes. `fetch` uses the codes of curl (curl(1), "EXIT CODES").
enum ExitStatus {
    /// The code for a refusal, in all commands except `fetch`.
    static let refused: Int32 = 1
    static let failedToStart: Int32 = 2
    /// `credentials import`: some logins of the file were not stored; the others were.
    static let incomplete: Int32 = 3
    /// A wrong command line of `fetch`. The other commands use EX_USAGE (64) of sysexits.h.
    static let usage: Int32 = 2
    static let unsupportedProtocol: Int32 = 1
    static let badURL: Int32 = 3
    static let partialFile: Int32 = 18
    static let httpError: Int32 = 22
    static let writeError: Int32 = 23
    static let readError: Int32 = 26
    static let rangeError: Int32 = 33
    static let badResume: Int32 = 36
    static let certificateProblem: Int32 = 58
    static let loginDenied: Int32 = 67
    static let pinMismatch: Int32 = 90
    static let tooManyRedirects: Int32 = 47
    /// The response was received, but the keyring does not contain the login. curl has no such code; its codes end below.
    static let notInKeyring: Int32 = 120

    static func code(for cause: FailureCause) -> Int32 {
        switch cause {
        case .notHTTP, .schemeNotAllowed: unsupportedProtocol
        case .malformedHeader: 8
        case .bodyCutShort: partialFile
        case .emptyReply: 52
        case .sendFailed: 55
        case .receiveFailed: 56
        case .badContentCoding: 61
        case .http2: 92
        }
    }

    static func code(for kind: ErrorKind) -> Int32 {
        switch kind {
        case .badURL: 3
        case .notSupported: 4
        case .proxyFailed: 97
        case .nameNotResolved: 6
        case .cannotConnect: 7
        case .malformedResponse: 8
        case .timedOut: 28
        case .tlsFailed: 35
        case .cancelled: 42
        case .invalidHeader, .invalidMethod: 43
        case .tooManyRedirects, .insecureRedirect, .badRedirect: tooManyRedirects
        case .connectionLost: 56
        case .clientCertificateRejected: certificateProblem
        case .serverNotTrusted: 60
        case .tooLarge: 63
        case .bodyNotReplayable: 65
        case .bodyIncomplete: readError
        case .challengeCancelled, .challengeTimedOut, .tooManyAttempts, .invalidAnswer, .denied, .serverNotAuthentic,
            .loginFailed:
            loginDenied
        case .parseError, .invalidRequest, .methodNotFound, .invalidParams, .internalError, .busy, .shuttingDown,
            .unknownFetch, .protocolViolation, .locked, .unknownCredential, .keyringUnavailable,
            .noAgent:
            failedToStart
        }
    }

    static func code(for failure: ClientFailure) -> Int32 {
        switch failure {
        case .notRunning, .cannotStart, .socketNotTrusted, .connectionLost, .silent, .protocolViolation: failedToStart
        case .interrupted(let signal): 128 + signal
        case .refused(let error):
            error.cause.map { code(for: $0) } ?? error.kind.map { code(for: $0) } ?? failedToStart
        }
    }
}

/// Writes one line to standard error.
func printError(_ text: String) { StandardError.write(line: "watchword: \(text)") }

/// Prints an error, and returns its exit code. An interruption is not printed.
func report(_ failure: ClientFailure) -> ExitCode {
    if case .interrupted = failure {} else { printError(failure.description) }
    return ExitCode(ExitStatus.code(for: failure))
}

/// Like `report`, for all commands except `fetch`: the exit code is 1 for any refusal of the broker.
func reportRefusal(_ failure: ClientFailure) -> ExitCode {
    guard case .refused(let error) = failure else { return report(failure) }
    switch error.kind {
    case .unknownCredential:
        return refusal("no credential with this id; show all with: watchword credentials list")
    case .methodNotFound: return refusal("the running broker does not support this command; restart it (\(error.text))")
    default: return refusal(error.text)
    }
}

/// Prints the reason for a refusal, and returns its exit code.
func refusal(_ text: String) -> ExitCode { ExitCode(ExitStatus.refused, printing: text) }

extension ExitCode {
    /// Prints an error.
    init(_ status: Int32, printing text: String) {
        printError(text)
        self.init(status)
    }
}
