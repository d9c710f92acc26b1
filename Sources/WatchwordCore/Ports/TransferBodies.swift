/// The body of a request.
public enum RequestBody: Sendable, Equatable {
    case bytes([UInt8])
    /// It comes through a socket.
    case stream(RequestStream)

    /// The bytes, where they are all at hand.
    var bytes: [UInt8]? {
        if case .bytes(let bytes) = self { bytes } else { nil }
    }
}

public struct RequestStream: Sendable, Equatable {
    public var source: BodySourceID
    /// `nil` when nobody knows: then it goes out in chunks (RFC 9112 section 7.1).
    public var size: Int?

    public init(source: BodySourceID, size: Int?) {
        self.source = source
        self.size = size
    }
}

/// Names the place of one request's body in a port; never used again.
public struct BodySourceID: Hashable, Sendable {
    public let value: Int

    public init(value: Int) { self.value = value }
}

/// What has become of a request's body that comes through a socket.
public enum RequestBodyState: Sendable, Equatable {
    /// Nothing of it was sent.
    case untouched
    /// All that was sent is still there.
    case copied
    /// Some of it was sent, and is gone.
    case spent
}

/// When a response is handed over: complete, or while its body is still on its way.
///
/// Responses that ask for a log-in or lead elsewhere (401, 407, 3xx) are always handed over complete: what comes of them is
/// decided later.
public enum BodyDelivery: Sendable, Equatable {
    case whole
    /// Complete, unless the body is larger than so many bytes.
    case beyond(Int)
    /// As soon as its header is there.
    case fromHeader
}

/// A body that a port holds, and that has to be read, attached or cancelled.
public struct OpenBody: Sendable, Equatable {
    public var transfer: TransferID
    /// As the server has announced it; `nil` when it has not, or when the body comes in a coding that is undone.
    public var announcedBytes: Int?

    public init(transfer: TransferID, announcedBytes: Int?) {
        self.transfer = transfer
        self.announcedBytes = announcedBytes
    }
}

/// The next bytes of an open body.
public struct BodyPart: Sendable, Equatable {
    public var bytes: [UInt8]
    /// Where `bytes` start in the body.
    public var offset: Int
    public var isAtEnd: Bool

    public init(bytes: [UInt8], offset: Int, isAtEnd: Bool) {
        self.bytes = bytes
        self.offset = offset
        self.isAtEnd = isAtEnd
    }
}

/// How far a transfer has come.
public struct TransferProgress: Sendable, Equatable {
    public var receivedBytes: Int
    public var announcedBytes: Int?
    public var sentBytes: Int

    public init(receivedBytes: Int, announcedBytes: Int?, sentBytes: Int) {
        self.receivedBytes = receivedBytes
        self.announcedBytes = announcedBytes
        self.sentBytes = sentBytes
    }
}

extension TransferRequest {
    /// A larger body, or one of unknown size, is announced before it is sent, so that a challenge comes first.
    public static let announcedBodyBytes = 1 << 20

    /// Methods whose meaning includes a body send an empty one, with its length, where none is given (RFC 9110 section 8.6).
    public var sendsBody: Bool { method != "HEAD" && (body != nil || ["POST", "PUT", "PATCH"].contains(method)) }

    /// It is worth to wait for a challenge, or for `100 Continue`, before the body is sent (RFC 9110 section 10.1.1).
    public var announcesBody: Bool {
        switch body {
        case .bytes(let bytes)?: bytes.count > Self.announcedBodyBytes
        case .stream(let stream)?: stream.size.map { $0 > Self.announcedBodyBytes } ?? true
        case nil: false
        }
    }
}
