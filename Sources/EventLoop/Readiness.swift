internal import CPlatform
internal import Glibc

/// Events of a descriptor, to wait for or to report.
public struct ReadyEvents: OptionSet, Sendable {
    public let rawValue: UInt32

    public init(rawValue: UInt32) { self.rawValue = rawValue }

    public static let readable = ReadyEvents(rawValue: UInt32(WATCHWORD_READABLE))
    public static let writable = ReadyEvents(rawValue: UInt32(WATCHWORD_WRITABLE))
    /// Both directions are closed, or there is an error. Reported even if not requested.
    public static let hungUp = ReadyEvents(rawValue: UInt32(WATCHWORD_HUNG_UP))
}

/// Receives the events of a watched descriptor, on the loop.
public protocol ReadinessHandler: AnyObject {
    func ready(_ descriptor: Int32, _ events: ReadyEvents)
}

/// Is called at the end of a turn after `EventLoop.atEndOfTurn`.
public protocol TurnEndHandler: AnyObject {
    func turnEnds()
}

/// The watched descriptors of a loop and their handlers, based on level-triggered epoll(7).
///
/// A descriptor may be closed and its number reused while events of the closed descriptor are pending. Each watch has a
/// generation number, so that these events do not reach the new handler.
struct PollSet: ~Copyable {
    private struct Watch {
        var generation: UInt32 = 0
        var events: ReadyEvents = []
        var handler: (any ReadinessHandler)?
    }

    /// The maximum number of events of one wait.
    private static let most = 64

    private let descriptor: Int32
    private var watches: [Watch] = []
    private var lastGeneration: UInt32 = 0
    private var ready = [watchword_readiness](repeating: watchword_readiness(), count: most)

    init() throws(LoopFailure) {
        descriptor = watchword_poll_descriptor()
        guard descriptor >= 0 else { throw LoopFailure("epoll_create1") }
    }

    deinit { close(descriptor) }

    /// - Returns: 0, or an error number.
    mutating func watch(_ number: Int32, _ events: ReadyEvents, _ handler: any ReadinessHandler) -> Int32 {
        let index = Int(number)
        if index >= watches.count {
            watches.append(contentsOf: repeatElement(Watch(), count: max(index + 1, 64) - watches.count))
        }
        let isWatched = watches[index].handler != nil
        if isWatched, watches[index].handler === handler {
            if watches[index].events == events { return 0 }
        } else {
            lastGeneration &+= 1
            watches[index].generation = lastGeneration
            watches[index].handler = handler
        }
        watches[index].events = events
        let error = watchword_poll_watch(
            descriptor, number, events.rawValue, watches[index].generation, isWatched ? 1 : 0)
        if error != 0 { forget(number, of: nil) }
        return error
    }

    /// Stops watching a descriptor.
    /// - Parameter handler: if given, no effect unless this is the handler of the descriptor.
    mutating func forget(_ number: Int32, of handler: (any ReadinessHandler)?) {
        let index = Int(number)
        guard index >= 0, index < watches.count, let current = watches[index].handler,
            handler == nil || current === handler
        else { return }
        watches[index].handler = nil
        watchword_poll_forget(descriptor, number)
    }

    /// Waits for events; -1 waits without a time limit.
    /// - Returns: the number of events available from `event(_:)`.
    mutating func wait(milliseconds: Int32) -> Int {
        Int(watchword_poll_wait(descriptor, &ready, Int32(Self.most), milliseconds))
    }

    /// Returns an event; `nil` if its watch has ended since the wait.
    func event(_ index: Int) -> (descriptor: Int32, events: ReadyEvents, handler: any ReadinessHandler)? {
        let one = ready[index]
        let watch = watches[Int(one.descriptor)]
        // guard: event-of-another
        guard watch.generation == one.generation, let handler = watch.handler else { return nil }
        return (one.descriptor, ReadyEvents(rawValue: one.events), handler)
    }
}
