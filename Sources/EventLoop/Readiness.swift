internal import CPlatform
internal import Glibc

/// What has happened to a descriptor, or is waited for.
public struct ReadyEvents: OptionSet, Sendable {
    public let rawValue: UInt32

    public init(rawValue: UInt32) { self.rawValue = rawValue }

    public static let readable = ReadyEvents(rawValue: UInt32(WATCHWORD_READABLE))
    public static let writable = ReadyEvents(rawValue: UInt32(WATCHWORD_WRITABLE))
    /// Both directions have ended, or there is an error. Comes without being asked for.
    public static let hungUp = ReadyEvents(rawValue: UInt32(WATCHWORD_HUNG_UP))
}

/// Is told, on the loop, what happens to the descriptors that it watches.
public protocol ReadinessHandler: AnyObject {
    func ready(_ descriptor: Int32, _ events: ReadyEvents)
}

/// Has something to do at the end of a turn of the loop, once for all that happened in it.
public protocol TurnEndHandler: AnyObject {
    func turnEnds()
}

/// The descriptors of a loop, and who is told of them: epoll(7), level-triggered.
///
/// A number may be closed and opened again while events of the old descriptor are still to be handled. Each watch has a
/// generation of its own, so that these are not taken for the new one's.
struct PollSet: ~Copyable {
    private struct Watch {
        var generation: UInt32 = 0
        var events: ReadyEvents = []
        var handler: (any ReadinessHandler)?
    }

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

    /// - Returns: 0, or errno.
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

    /// - Parameter handler: only if it is still this one's; `nil` for anybody's.
    mutating func forget(_ number: Int32, of handler: (any ReadinessHandler)?) {
        let index = Int(number)
        guard index >= 0, index < watches.count, let current = watches[index].handler,
            handler == nil || current === handler
        else { return }
        watches[index].handler = nil
        watchword_poll_forget(descriptor, number)
    }

    /// - Returns: how many events `event(_:)` has.
    mutating func wait(milliseconds: Int32) -> Int {
        Int(watchword_poll_wait(descriptor, &ready, Int32(Self.most), milliseconds))
    }

    /// `nil` for one whose watch has ended meanwhile.
    func event(_ index: Int) -> (descriptor: Int32, events: ReadyEvents, handler: any ReadinessHandler)? {
        let one = ready[index]
        let watch = watches[Int(one.descriptor)]
        guard watch.generation == one.generation, let handler = watch.handler else { return nil }
        return (one.descriptor, ReadyEvents(rawValue: one.events), handler)
    }
}
