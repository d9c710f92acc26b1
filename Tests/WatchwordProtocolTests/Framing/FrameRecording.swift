import WatchwordProtocol

/// The output of a decoder for a stream that is received in the given pieces.
struct FrameRecording: Equatable {
    enum Event: Equatable {
        case message(String)
        case tooLarge
    }

    var events: [Event] = []
    var framing: Framing?
    var failure: FramingFailure?

    init(of pieces: [[UInt8]], maxMessageBytes: Int = Limits.messageBytes) {
        var decoder = FrameDecoder(maxMessageBytes: maxMessageBytes)
        do throws(FramingFailure) {
            for piece in pieces { try feed(piece, to: &decoder) }
        } catch {
            failure = error
        }
        framing = decoder.framing
    }

    init(of text: String, maxMessageBytes: Int = Limits.messageBytes) {
        self.init(of: [Array(text.utf8)], maxMessageBytes: maxMessageBytes)
    }

    /// The recording of a stream that holds `messages` and nothing else.
    init(_ messages: [String], framing: Framing) {
        events = messages.map { .message($0) }
        self.framing = framing
    }

    private mutating func feed(_ piece: [UInt8], to decoder: inout FrameDecoder) throws(FramingFailure) {
        // `Array.withUnsafeBytes` has no typed throws.
        let bytes = UnsafeMutableRawBufferPointer.allocate(byteCount: piece.count, alignment: 1)
        defer { bytes.deallocate() }
        bytes.copyBytes(from: piece)
        var heard: [Event] = []
        defer { events += heard }
        try decoder.feed(UnsafeRawBufferPointer(bytes)) { event in
            switch event {
            case .message(let message): heard.append(.message(String(decoding: message, as: UTF8.self)))
            case .tooLarge: heard.append(.tooLarge)
            }
        }
    }
}

extension Framing {
    /// A stream of `messages`, made without the code under test.
    func stream(_ messages: [String]) -> [UInt8] {
        messages.flatMap { message in
            switch self {
            case .lines: Array("\(message)\n".utf8)
            case .headers: Array("Content-Length: \(message.utf8.count)\r\n\r\n\(message)".utf8)
            }
        }
    }
}
