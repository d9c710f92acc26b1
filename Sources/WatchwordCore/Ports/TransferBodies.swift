public import WatchwordProtocol

/// A request body: bytes in memory, or a stream from a socket of the client.
public enum RequestBody: Sendable, Equatable {
    case bytes([UInt8])
    case stream(RequestStream)

    /// The bytes, unless the body is a stream.
    var bytes: [UInt8]? {
        if case .bytes(let bytes) = self { bytes } else { nil }
    }
}

public struct RequestStream: Sendable, Equatable {
    public var source: BodySourceID
    /// The size in bytes; `nil` if unknown. The body is then sent in chunks (RFC 9112 section 7.1).
    public var size: Int?

    public init(source: BodySourceID, size: Int?) {
        self.source = source
        self.size = size
    }
}

/// Identifies the source of one request's body in a port; never reused.
public struct BodySourceID: Hashable, Sendable {
    public let value: Int

    public init(value: Int) { self.value = value }
}

/// Whether a streamed request body was sent, and whether it can be sent again.
public enum RequestBodyState: Sendable, Equatable {
    /// Nothing was sent.
    case untouched
    /// Everything that was sent is still available.
    case copied
    /// A part was sent, and cannot be sent again.
    case spent
}

/// The time at which a response is delivered: when it is complete, or while its body is still being received.
///
/// Responses with status 401, 407 or 3xx are delivered complete, because they may lead to another request, unless their body is slow,
/// or broken (`TransferResponse.bodyFailure`).
public enum BodyDelivery: Sendable, Equatable {
    case whole
    /// When it is complete, unless the body is larger than this number of bytes.
    case beyond(Int)
    /// When the header has been received.
    case fromHeader

    /// Whether a body of this many bytes is part of the result.
    public func isInline(_ bytes: Int) -> Bool {
        switch self {
        case .whole: true
        case .beyond(let most): bytes <= most
        case .fromHeader: false
        }
    }
}

/// A response body at a port, to be read, attached or cancelled.
public struct OpenBody: Sendable, Equatable {
    public var transfer: TransferID
    /// The length from the server's header; `nil` if unknown, or if a content coding is decoded.
    public var announcedBytes: Int?

    public init(transfer: TransferID, announcedBytes: Int?) {
        self.transfer = transfer
        self.announcedBytes = announcedBytes
    }
}

/// The next bytes of an open body.
public struct BodyPart: Sendable, Equatable {
    public var bytes: [UInt8]
    /// The position of `bytes` in the body, in bytes.
    public var offset: Int
    public var isAtEnd: Bool
    /// The fields after the body, at its end (RFC 9110 section 6.5).
    public var trailers = HeaderBlock()

    public init(bytes: [UInt8], offset: Int, isAtEnd: Bool) {
        self.bytes = bytes
        self.offset = offset
        self.isAtEnd = isAtEnd
    }
}

/// The progress of a transfer.
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
    /// The size in bytes above which a request body is announced with `Expect: 100-continue`, so that a challenge
    /// arrives before the body is sent. A body of unknown size is always announced.
    public static let announcedBodyBytes = 1 << 20

    /// Whether an HTTP proxy forwards the request, without a tunnel.
    public var isForwarded: Bool { proxy.map { $0.kind != .socks5h } ?? false && url.origin.scheme == .http }

    /// The request target, in the form that the next hop expects (RFC 9112 section 3.2).
    public var target: String { isForwarded ? url.absoluteTarget : url.requestTarget }
}

extension SharedRequest {
    /// Whether a body is sent. Methods whose meaning includes a body send an empty one with its length (RFC 9110
    /// section 8.6).
    public var sendsBody: Bool {
        value.method != "HEAD" && (value.body != nil || ["POST", "PUT", "PATCH"].contains(value.method))
    }

    /// Whether to wait for a challenge or `100 Continue` before sending the body (RFC 9110 section 10.1.1).
    public var announcesBody: Bool {
        switch value.body {
        case .bytes(let bytes)?: bytes.count > TransferRequest.announcedBodyBytes
        case .stream(let stream)?: stream.size.map { $0 > TransferRequest.announcedBodyBytes } ?? true
        case nil: false
        }
    }
}
