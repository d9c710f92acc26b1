import ArgumentParser
import WatchwordProtocol

/// The response of one attempt: its header, and the destination of its body.
struct AttemptResponse {
    let output: ResponseOutput
    private let part: PartialFile?
    private let resumption: Resumption?
    /// Whether the output is exactly the representation that a GET returns: without the header (`-i`), not decompressed, and
    /// not the response to another method, whose validator is that of the resource (RFC 9110 section 8.8).
    private let isRepresentation: Bool
    private(set) var head: ReportedHead?
    private(set) var verdict = Resumption.Verdict.write(from: 0)

    /// Opens the output file, so that an unwritable file is reported before anything is requested.
    init(_ item: FetchItem) throws {
        let part =
            try item.resume == nil
            ? nil : item.file.flatMap { try PartialFile(for: $0, createsFolders: item.createsFolders) }
        resumption = try item.resume.map { try Resumption($0, part: part) }
        if item.printsJSON && item.file == nil {
            output = .inMemory()
        } else if let part {
            output = ResponseOutput(part)
        } else {
            output =
                try item.file.map { try ResponseOutput(file: $0, createsFolders: item.createsFolders) }
                ?? .standardOutput()
        }
        self.part = part
        isRepresentation =
            !item.showsHeader && !item.params.decompress && item.content == nil && item.params.method == "GET"
    }

    /// The header fields that request the rest of a partial file.
    var requestHeaders: [HeaderField] { resumption?.headers ?? [] }

    /// The offset in the file at which the body starts, in bytes.
    var offset: Int { if case .write(let offset) = verdict { offset } else { 0 } }

    /// Records the header. Returns whether to write the body: always, except if `-C` cannot use it.
    mutating func receive(_ head: ReportedHead) -> Bool {
        self.head = head
        verdict = resumption?.verdict(head) ?? .write(from: 0)
        return if case .write = verdict { true } else { false }
    }

    /// Truncates the partial file to the offset of the body. At offset 0, also replaces the stored validator.
    func startBody() throws {
        guard let part, let head else { return }
        try part.start(at: offset)
        if offset == 0 { part.store(head.status == 200 ? head.strongValidator : nil) }
    }

    /// Whether the received range reaches the end of the file. A server may send less than requested (RFC 9110 section 15.3.7).
    func reachesEnd(after receivedBytes: Int) -> Bool {
        guard case .write(let offset) = verdict, head?.status == 206, let total = head?.contentRange?.total else {
            return true
        }
        return offset + receivedBytes == total
    }

    /// Empties and removes the partial file, before an attempt that fetches everything again.
    func startOver() {
        try? part?.start(at: 0)
        _ = part?.leave()
    }

    /// Removes an incomplete file, unless `-C` can resume it.
    /// - Parameter isInterrupted: whether a file that was not written with `-C` also remains, if the server names its version.
    /// - Returns: a message that names a file that can be resumed; `nil` if there is none.
    func discard(isInterrupted: Bool = false) -> String? {
        if let part { return part.leave() }
        let isResumable = isInterrupted && isRepresentation && head?.status == 200
        return output.discard(validator: isResumable ? head?.strongValidator : nil)
    }
}
