public import Broker
internal import CPlatform
public import NIOCore

/// A SwiftNIO event loop as the broker's own.
public struct EventLoopAdapter: BrokerLoop {
    private let loop: any EventLoop

    public init(_ loop: any EventLoop) { self.loop = loop }

    public var executor: any SerialExecutor { loop.executor }

    public func post(_ call: @escaping @Sendable () -> Void) {
        loop.execute {
            call()
            // What has come, or ended, may have been a login.
            watchword_clear_stack()
        }
    }
}
