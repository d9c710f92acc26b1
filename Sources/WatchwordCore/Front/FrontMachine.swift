/// The state of one connection of a program to a front: its requests one after the other, their bodies, and when the connection
/// is read, limited in time and closed.
///
/// Performs no I/O and reads no clock. After input, its owner calls `next` until it returns `nil`, and carries out each command
/// before it asks for the next one, because a service that answers at once changes the state.
public struct FrontMachine: ~Copyable, Sendable {
    private enum State: Sendable {
        /// Nothing is read until the program is identified.
        case identifying
        /// No request is open.
        case idle
        /// A small body is received before the request is passed on.
        case collecting(FrontRequest)
        /// The request was passed on.
        case answering
        /// All further input is passed on as it is, in another protocol.
        case switched
        /// After all output is sent, the input is discarded until the program closes the connection.
        case ending
        case tunnel
        case closed
    }

    /// The upload of a body that is passed on while it is received.
    private struct Upload: Sendable {
        /// Whether the program waits for `100 Continue`.
        var expectsContinue: Bool
        /// Whether the program waits for the switch to another protocol. Until then nothing is uploaded.
        var expectsSwitch: Bool
        /// Whether the body was received completely.
        var isComplete = false
    }

    /// What is left to be sent, as its owner knows it.
    public struct Backlog: Sendable {
        /// The bytes that the program has not taken yet.
        public var output: Int
        /// Whether more of the body can be uploaded.
        public var hasUploadRoom: Bool

        public init(output: Int, hasUploadRoom: Bool) { (self.output, self.hasUploadRoom) = (output, hasUploadRoom) }
    }

    /// The next step of a request.
    public enum Command: Sendable, Equatable {
        /// Pass on a request with its body, for which `stream` opens an upload. A tunnel may be refused instead.
        case begin(FrontRequest, FrontBody)
        case upload([UInt8])
        /// The body is complete. The upload stays open: closing it would mean that the body is cut off.
        case finishUpload
        /// Cut off the upload, because the rest of the body is malformed. The origin must not take the part for the whole body.
        case breakRequest(FrontRefusal)
        /// Answer with the refusal, and close the connection.
        case refuse(FrontRefusal)
    }

    /// A change of the time limit of the connection.
    public enum TimeLimit: Sendable, Equatable {
        case keep
        case none
        /// From now on.
        case after(Duration)
    }

    /// What the owner of the socket does next.
    public enum Action: Sendable, Equatable {
        case nothing
        /// Watch the socket.
        case wait(TimeLimit)
        /// Carry out the next commands.
        case process
        case finishUpload
        /// End the output, and read for `lingering`: a closed socket with unread input would make the kernel discard the response.
        case shutDown
        /// Send the output that is left, within `idleTime`.
        case finish
        case end
    }

    /// The largest body that is received before the request is passed on, in bytes.
    public static let smallBody = 64 << 10
    /// Bytes of later requests that are read while a request is being answered.
    public static let ahead = 64 << 10
    /// Unsent output above which the service has to wait, in bytes.
    public static let highWaterMark = 256 << 10
    /// The time for the next request, for a part of it, and for reading a part of a response.
    public static let idleTime = Duration.seconds(60)
    /// The interval at which a tunnel, or a connection with another protocol, checks that its program has not closed it.
    public static let programCheck = Duration.seconds(30)
    /// The time that a closed connection is still read.
    public static let lingering = Duration.seconds(2)

    private var state = State.identifying
    private var reader = FrontRequestReader()
    private var upload: Upload?
    /// The body of a request in the state `collecting`, or what is to be uploaded first.
    private var collected: [UInt8] = []
    private var hasInputEnded = false

    public init() {}

    public var isIdentifying: Bool { if case .identifying = state { true } else { false } }

    /// Begins to read, because the program was identified and admitted.
    public mutating func admit() { if isIdentifying { state = .idle } }

    // MARK: Input

    /// Whether the connection is to be read now.
    public func isReading(_ backlog: Backlog) -> Bool {
        guard !hasInputEnded else { return false }
        switch state {
        case .idle: return backlog.output < Self.highWaterMark
        case .collecting, .ending: return true
        case .switched: return backlog.hasUploadRoom
        case .answering: return isUploading ? backlog.hasUploadRoom : reader.bufferedBytes < Self.ahead
        case .identifying, .tunnel, .closed: return false
        }
    }

    /// Whether the rest of a body is to be received.
    private var isUploading: Bool { upload.map { !$0.isComplete && !$0.expectsSwitch } ?? false }

    /// Whether more of the request's body can be taken, so that the program must not keep the fetch waiting.
    private func awaitsBody(_ backlog: Backlog) -> Bool { isUploading && backlog.hasUploadRoom }

    /// Takes received bytes. Returns what is to be uploaded as it is.
    public mutating func receive(_ bytes: UnsafeRawBufferPointer) -> [UInt8]? {
        switch state {
        case .switched: return Array(bytes)
        case .ending, .tunnel, .closed: return nil
        case .identifying, .idle, .collecting, .answering:
            reader.append(bytes)
            return nil
        }
    }

    /// Handles the end of input. A program that has only shut down its writing side still gets its responses, also those to
    /// requests that it has sent ahead.
    /// - Parameter isPeerOpen: whether the program can still read.
    public mutating func endInput(isPeerOpen: Bool, _ backlog: Backlog) -> Action {
        hasInputEnded = true
        guard isPeerOpen else { return .end }
        switch state {
        case .answering where !isUploading: return .wait(.keep)
        case .ending where backlog.output > 0: return .wait(.keep)
        case .switched: return .finishUpload
        case .idle: return .process
        default: return .end
        }
    }

    /// Returns the next command; `nil` if more input is needed, or a response has to end first.
    public mutating func next(_ backlog: Backlog) -> Command? {
        switch state {
        // A program that sends requests without reading the responses has to wait.
        case .idle where backlog.output >= Self.highWaterMark: return nil
        case .idle, .collecting: break
        case .answering where !collected.isEmpty: return .upload(takeCollected())
        case .answering where awaitsBody(backlog): break
        default: return nil
        }
        while let item = reader.next() {
            if let command = handle(item) { return command }
        }
        return nil
    }

    private mutating func handle(_ item: FrontRequestReader.Item) -> Command? {
        switch (item, state) {
        case (.head(let request), _):
            switch request.body {
            case .none where request.upgrade != nil: return beginUpload(request, nil)
            case .none: return begin(request, .none)
            case .sized(let size) where size > Self.smallBody || request.expectsContinue:
                return beginUpload(request, size)
            case .chunked where request.expectsContinue: return beginUpload(request, nil)
            case .sized, .chunked: state = .collecting(request)
            }
        case (.body(let part), .collecting(let request)):
            collected += part
            if collected.count > Self.smallBody { return beginUpload(request, nil) }
        case (.body(let part), _): return .upload(part)
        case (.end, .collecting(let request)): return begin(request, .bytes(takeCollected()))
        case (.end, _):
            guard upload != nil else { return nil }
            upload?.isComplete = true
            return .finishUpload
        case (.refused(let refusal), .answering): return .breakRequest(refusal)
        case (.refused(let refusal), _): return .refuse(refusal)
        }
        return nil
    }

    private mutating func takeCollected() -> [UInt8] {
        defer { collected = [] }
        return collected
    }

    private mutating func begin(_ request: FrontRequest, _ body: FrontBody) -> Command {
        state = .answering
        return .begin(request, body)
    }

    private mutating func beginUpload(_ request: FrontRequest, _ size: Int?) -> Command {
        upload = Upload(expectsContinue: request.expectsContinue, expectsSwitch: request.body == .none)
        return begin(request, .stream(size: size))
    }

    /// Returns how the connection waits, once `next` has returned `nil`.
    public mutating func rest(_ backlog: Backlog) -> Action {
        switch state {
        case .idle where backlog.output >= Self.highWaterMark: return .wait(.keep)
        // No further request can come.
        case .idle where hasInputEnded: return close()
        case .idle, .collecting: return .wait(.after(Self.idleTime))
        case .answering: return .wait(awaitsBody(backlog) || backlog.output > 0 ? .after(Self.idleTime) : .none)
        case .switched: return .wait(.keep)
        case .identifying, .ending, .tunnel, .closed: return .nothing
        }
    }

    /// Returns whether `100 Continue` is to be sent, because the body is read now.
    public mutating func takeContinue() -> Bool {
        defer { upload?.expectsContinue = false }
        return upload?.expectsContinue == true
    }

    // MARK: Output

    /// Whether output may be queued.
    public var acceptsOutput: Bool {
        switch state {
        case .idle, .collecting, .answering, .switched: true
        case .identifying, .ending, .tunnel, .closed: false
        }
    }

    /// Whether the socket is read and written here.
    public var isOpen: Bool {
        if case .ending = state { true } else { acceptsOutput }
    }

    /// Handles that queued output was sent, as far as the program has taken it.
    /// - Parameters:
    ///   - before: the bytes that were left before.
    ///   - isLimited: whether the connection has a time limit.
    public func sent(_ backlog: Backlog, before: Int, isLimited: Bool) -> Action {
        let (isBlocked, hasProgressed) = (backlog.output > 0, backlog.output < before)
        switch state {
        case .ending where !isBlocked: return hasInputEnded ? .end : .shutDown
        case .switched: return .wait(.keep)
        // While the response is awaited, its time is not limited here.
        case _ where isBlocked: return .wait(hasProgressed || !isLimited ? .after(Self.idleTime) : .keep)
        case .answering where hasProgressed: return .wait(awaitsBody(backlog) ? .after(Self.idleTime) : .none)
        default: return .wait(.keep)
        }
    }

    /// Whether the program has now taken enough output that requests which it has sent ahead can be handled.
    public func continues(_ backlog: Backlog, before: Int) -> Bool {
        guard case .idle = state else { return false }
        return before >= Self.highWaterMark && backlog.output < Self.highWaterMark
    }

    /// Whether the service can send more of its response.
    public func isDrained(_ backlog: Backlog, before: Int) -> Bool {
        isResponding && before > 0 && backlog.output < Self.highWaterMark
    }

    private var isResponding: Bool {
        switch state {
        case .answering, .switched: true
        case .identifying, .idle, .collecting, .ending, .tunnel, .closed: false
        }
    }

    /// Ends the response, and its upload. Returns `nothing` without a response, and `process` if the next request may be read.
    public mutating func endResponse(keepsAlive: Bool) -> Action {
        guard isResponding else { return .nothing }
        let isComplete = !isUploading
        (upload, collected) = (nil, [])
        guard keepsAlive && isComplete else { return close() }
        state = .idle
        return .process
    }

    /// Begins to close the connection.
    public mutating func close() -> Action {
        switch state {
        case .idle, .collecting, .answering, .switched:
            (state, collected) = (.ending, [])
            return .finish
        case .identifying: return .end
        case .ending, .tunnel, .closed: return .nothing
        }
    }

    /// Whether all output was queued, so that the connection may outlive its front.
    public var isEnding: Bool { if case .ending = state { true } else { false } }

    // MARK: Other protocols

    /// Begins a tunnel. Returns the bytes that the program has sent ahead; `nil` if there is no request to answer.
    public mutating func beginTunnel() -> [UInt8]? {
        guard case .answering = state else { return nil }
        state = .tunnel
        return reader.takeRest()
    }

    /// Passes on all further input as it is. Returns the bytes that the program has sent ahead, and whether they are all; `nil` if
    /// the program has not asked for it.
    public mutating func switchProtocol() -> (early: [UInt8], isAll: Bool)? {
        guard case .answering = state, upload?.expectsSwitch == true else { return nil }
        upload?.expectsSwitch = false
        state = .switched
        return (reader.takeRest(), hasInputEnded)
    }

    /// Whether the connection continues after its time is over, as long as its program has not closed it: the kernel reports only
    /// the end of input.
    public var outlivesTime: Bool {
        switch state {
        case .tunnel, .switched: true
        case .identifying, .idle, .collecting, .answering, .ending, .closed: false
        }
    }

    /// Ends the connection. Returns `false` if it has ended before.
    public mutating func end() -> Bool {
        if case .closed = state { return false }
        state = .closed
        return true
    }
}
