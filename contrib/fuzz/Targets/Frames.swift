import WatchwordProtocol

/// Checks that bytes in pieces of any size give the same messages as all at once, that no message exceeds the limit, and that the
/// messages are the same after they are framed again.
func checkFrames(_ bytes: [UInt8]) throws {
    guard bytes.count >= 2 else { return }
    let limit = 1 + Int(bytes[0])
    let stream = Array(bytes[2...])
    let whole = FrameRecording(of: [stream], limit: limit)
    let odd = FrameRecording(of: stream.pieces(seed: bytes[1]), limit: limit)
    try hold(whole == odd, "in one piece \(whole), in several \(odd)")
    let messages = whole.messages
    try hold(messages.allSatisfy { $0.count <= limit }, "a message above the limit of \(limit): \(whole)")
    try hold(messages.reduce(0) { $0 + $1.count } <= stream.count, "more bytes than received: \(whole)")
    guard let framing = whole.framing, messages.count == whole.events.count, !messages.isEmpty else { return }
    let again = messages.flatMap { message -> [UInt8] in
        switch framing {
        case .lines: message + [0x0A]
        case .headers: Array("Content-Length: \(message.count)\r\n\r\n".utf8) + message
        }
    }
    let second = FrameRecording(of: [again], limit: limit)
    try hold(second.events == whole.events && second.framing == framing, "framed again: \(second), not \(whole)")
}

/// The output of a decoder for a stream.
private struct FrameRecording: Equatable {
    enum Event: Equatable {
        case message([UInt8])
        case tooLarge
    }

    var events: [Event] = []
    var framing: Framing?
    var failure: FramingFailure?
    /// The number of bytes of an incomplete message; unset after a failure.
    var waiting = 0

    init(of pieces: [[UInt8]], limit: Int) {
        var decoder = FrameDecoder(maxMessageBytes: limit)
        var observed: [Event] = []
        do {
            for piece in pieces {
                try piece.withUnsafeBytes { bytes in
                    try decoder.feed(bytes) { event in
                        switch event {
                        case .message(let message): observed.append(.message(Array(message)))
                        case .tooLarge: observed.append(.tooLarge)
                        }
                    }
                }
            }
            waiting = decoder.bufferedCount
        } catch {
            failure = error as? FramingFailure
        }
        events = observed
        framing = decoder.framing
    }

    var messages: [[UInt8]] {
        events.compactMap { if case .message(let message) = $0 { message } else { nil } }
    }
}
