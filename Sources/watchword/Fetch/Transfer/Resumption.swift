import ArgumentParser
import Glibc
import WatchwordProtocol

/// `-C` for one attempt: what is asked for, and what the response makes of it.
struct Resumption {
    /// What is to be done with a response.
    enum Verdict: Equatable {
        /// Its body goes on at this byte.
        case write(from: Int)
        /// There is nothing more to come.
        case isComplete
        /// The part is of another version, or too long: all of it is to be fetched.
        case startOver
        /// It leaves everything as it is, and is an error with this code.
        case refuse(code: Int32, text: String)
    }

    /// The first byte that is missing.
    let offset: Int
    /// What the part is a part of.
    let validator: String?
    /// A number in the command: nothing else than going on there will do.
    let isFixed: Bool

    /// `part` is `nil` for standard output.
    init(_ resume: FetchItem.Resume, part: PartialFile?) throws {
        validator = part?.validator
        switch resume {
        case .whereItEnded:
            // What nobody can compare is fetched anew.
            (offset, isFixed) = (validator == nil ? 0 : part?.sizeBytes ?? 0, false)
        case .atByte(let byte):
            if let part, part.sizeBytes < byte {
                complain("\(part.path) ends before byte \(byte). Give -C - to go on where it ends.")
                throw ExitCode(ExitStatus.badResume)
            }
            (offset, isFixed) = (byte, true)
        }
    }

    var headers: [HeaderField] {
        guard offset > 0 else { return [] }
        let condition = validator.map { [HeaderField("If-Range", $0)] } ?? []
        return [HeaderField("Range", "bytes=\(offset)-")] + condition
    }

    func verdict(_ head: ResponseHead) -> Verdict {
        guard offset > 0 else { return .write(from: 0) }
        switch head.status {
        case 206:
            guard isSameVersion(head) else {
                return isFixed ? Self.refusal("The server has another version now.") : .startOver
            }
            guard head.contentRange?.first == offset else {
                return Self.refusal("The server has sent another range than the one asked for.")
            }
            return .write(from: offset)
        case 200..<300:
            return isFixed ? Self.refusal("The server does not continue: it has sent everything.") : .write(from: 0)
        case 416:
            let isWhole = head.contentRange?.total == offset && isSameVersion(head)
            return isWhole ? .isComplete : isFixed ? Self.refusal("The server has no byte \(offset).") : .startOver
        default:
            return .refuse(code: ExitStatus.httpError, text: "The server answers with status \(head.status).")
        }
    }

    /// A redirect to another server loses `If-Range`, and some servers do not know it.
    private func isSameVersion(_ head: ResponseHead) -> Bool {
        guard let validator else { return true }
        let found = head.headers.firstValue(of: validator.hasPrefix("\"") ? "ETag" : "Last-Modified")
        return found == validator || (found == nil && head.status == 416)
    }

    private static func refusal(_ text: String) -> Verdict { .refuse(code: ExitStatus.rangeError, text: text) }
}
