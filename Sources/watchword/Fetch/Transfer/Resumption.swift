import ArgumentParser
import Glibc
import WatchwordProtocol

/// The resumption of one attempt (`-C`): the range to request, and the verdict on the response.
struct Resumption {
    /// How to treat a response.
    enum Verdict: Equatable {
        /// Write the body at this offset.
        case write(from: Int)
        /// The partial file is complete already.
        case isComplete
        /// The partial file belongs to another version or is too long: fetch everything.
        case startOver
        /// Leave the partial file unchanged, and exit with this code.
        case refuse(code: Int32, text: String)
    }

    /// The offset of the first missing byte.
    let offset: Int
    /// The validator of the version in the partial file; `nil` if unknown.
    let validator: String?
    /// Whether the command contains an offset. If so, another version is an error.
    let isFixed: Bool

    /// - Parameter part: the partial file; `nil` for standard output, a device or a pipe.
    init(_ resume: FetchItem.Resume, part: PartialFile?) throws {
        validator = part?.validator
        switch resume {
        case .endOfPartial:
            // Without a validator the versions cannot be compared, so everything is fetched again.
            (offset, isFixed) = (validator == nil ? 0 : part?.sizeBytes ?? 0, false)
        case .atByte(let byte):
            if let part, part.sizeBytes < byte {
                throw ExitCode(
                    ExitStatus.badResume, printing: "\(part.path) ends before byte \(byte); resume at its end with -C -"
                )
            }
            (offset, isFixed) = (byte, true)
        }
    }

    var headers: [HeaderField] {
        guard offset > 0 else { return [] }
        let condition = validator.map { [HeaderField("If-Range", $0)] } ?? []
        return [HeaderField("Range", "bytes=\(offset)-")] + condition
    }

    func verdict(_ head: ReportedHead) -> Verdict {
        guard offset > 0 else { return .write(from: 0) }
        switch head.status {
        case 206:
            guard isSameVersion(head) else {
                return isFixed ? Self.refusal("the file has changed on the server") : .startOver
            }
            guard head.contentRange?.first == offset else {
                return Self.refusal("the server sent a different range")
            }
            return .write(from: offset)
        case 200..<300:
            return isFixed ? Self.refusal("the server ignored the range request") : .write(from: 0)
        case 416:
            let isWhole = head.contentRange?.total == offset && isSameVersion(head)
            return isWhole
                ? .isComplete : isFixed ? Self.refusal("the server has no byte \(offset)") : .startOver
        default:
            return .refuse(code: ExitStatus.httpError, text: "the server returned status \(head.status)")
        }
    }

    /// Whether the response belongs to the version in the partial file. `If-Range` alone does not ensure that: a redirect to
    /// another server drops it, and some servers ignore it.
    private func isSameVersion(_ head: ReportedHead) -> Bool {
        guard let validator else { return true }
        let found = head.headers.firstValue(of: validator.hasPrefix("\"") ? "ETag" : "Last-Modified")
        return found == validator || (found == nil && head.status == 416)
    }

    private static func refusal(_ reason: String) -> Verdict {
        .refuse(code: ExitStatus.rangeError, text: "cannot resume: \(reason); fetch the file again without -C")
    }
}
