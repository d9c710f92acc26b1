internal import Glibc
internal import Logging
internal import NIOCore

/// Stops accepting while descriptors or memory are short, and resumes when there are some again: clients wait in the kernel's
/// queue, and those who are there keep what their fetches need. A listening socket with a connection waiting is always readable:
/// without descriptors left the loop would do nothing else. After any other error the channel is closed, and `Listener` decides.
final class AcceptGate: ChannelInboundHandler {
    typealias InboundIn = Channel
    typealias InboundOut = Channel

    private static let pause = TimeAmount.milliseconds(100)

    private let log: Logger
    private let descriptors: Descriptors
    private let accepted: () -> Void
    private let failed: (any Error) -> Void
    private var isOpen = true

    /// - Parameters:
    ///   - accepted: called for each connection.
    ///   - failed: called for an error that is no shortage, before the channel is closed.
    init(
        descriptors: Descriptors = Descriptors(), log: Logger, accepted: @escaping () -> Void,
        failed: @escaping (any Error) -> Void
    ) {
        self.descriptors = descriptors
        self.log = log
        self.accepted = accepted
        self.failed = failed
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        accepted()
        context.fireChannelRead(data)
        if !descriptors.hasRoom { close(context, because: "only the reserve of descriptors is left") }
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        if Self.isShortage(error) { return close(context, because: "\(error)") }
        failed(error)
        context.close(promise: nil)
    }

    private static func isShortage(_ error: any Error) -> Bool {
        guard let error = error as? IOError else { return false }
        return [EMFILE, ENFILE, ENOBUFS, ENOMEM].contains(error.errnoCode)
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
