internal import Logging
internal import NIOCore

/// Stops accepting for a moment when accepting fails. A listening socket with a connection waiting is always readable: without
/// descriptors left the loop would do nothing else.
final class AcceptBackoff: ChannelInboundHandler {
    typealias InboundIn = Channel

    private static let pause = TimeAmount.milliseconds(100)

    private let log: Logger

    init(log: Logger) { self.log = log }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        log.error("cannot accept a connection", metadata: ["error": "\(error)"])
        let channel = context.channel
        channel.setOption(.autoRead, value: false).whenFailure { _ in }
        context.eventLoop.scheduleTask(in: Self.pause) {
            channel.setOption(.autoRead, value: true).whenFailure { _ in }
        }
    }
}
