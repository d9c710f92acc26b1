internal import Logging
internal import NIOCore

/// Stops accepting while descriptors are short, and goes on when there are some again: clients wait in the kernel's queue, and
/// those who are there keep what their fetches need. A listening socket with a connection waiting is always readable: without
/// descriptors left the loop would do nothing else.
final class AcceptGate: ChannelInboundHandler {
    typealias InboundIn = Channel
    typealias InboundOut = Channel

    private static let pause = TimeAmount.milliseconds(100)

    private let log: Logger
    private let descriptors: Descriptors
    private var isOpen = true

    init(descriptors: Descriptors = Descriptors(), log: Logger) {
        self.descriptors = descriptors
        self.log = log
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        context.fireChannelRead(data)
        if !descriptors.hasRoom { close(context, because: "only the reserve of descriptors is left") }
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        close(context, because: "\(error)")
    }

    private func close(_ context: ChannelHandlerContext, because reason: String) {
        guard isOpen else { return }
        isOpen = false
        log.error("no connections are accepted", metadata: ["reason": "\(reason)"])
        context.channel.setOption(.autoRead, value: false).whenFailure { _ in }
        openLater(context)
    }

    private func openLater(_ context: ChannelHandlerContext) {
        let channel = context.channel
        context.eventLoop.assumeIsolated().scheduleTask(in: Self.pause) {
            guard channel.isActive else { return }
            guard self.descriptors.hasRoom else { return self.openLater(context) }
            self.isOpen = true
            self.log.notice("connections are accepted again")
            channel.setOption(.autoRead, value: true).whenFailure { _ in }
        }
    }
}
