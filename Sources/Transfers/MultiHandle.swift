internal import CCurl
internal import WatchwordCore

/// A libcurl multi handle: the transfers that run together, and the connections they leave for the next.
/// Used on one loop.
final class MultiHandle {
    private let pointer: UnsafeMutableRawPointer
    private let connectionsPerHost: Int
    /// To all hosts.
    private let connections: Int
    private var heldConnections = 0

    /// - Parameter connectionsPerHost: further transfers wait for one of them; 0 for any number.
    /// - Throws: `TransferFailure` of kind `outOfMemory` or `internalError`.
    init(connectionsPerHost: Int = EngineLimits.connectionsPerHost) throws(TransferFailure) {
        guard let pointer = curl_multi_init() else {
            throw TransferFailure(.outOfMemory, "No memory for a transfer engine.")
        }
        self.pointer = pointer
        self.connectionsPerHost = connectionsPerHost
        connections = EngineLimits.connections
        try set(CURLMOPT_MAXCONNECTS, min(EngineLimits.keptConnections, connections))
        try set(CURLMOPT_MAX_TOTAL_CONNECTIONS, connections)
        try set(CURLMOPT_MAX_HOST_CONNECTIONS, connectionsPerHost)
        try set(CURLMOPT_PIPELINING, Int(CURLPIPE_MULTIPLEX))
    }

    /// Goes on with what waits for `socket`, or with `CURL_SOCKET_TIMEOUT` for what waits for a time.
    func act(on socket: curl_socket_t, _ events: Int32 = 0) {
        var running: Int32 = 0
        check(curl_multi_socket_action(pointer, socket, events, &running))
    }

    /// From now on `act` moves the transfers, and `user` is told what to wait for. It must outlive this handle.
    func watch(
        _ user: UnsafeMutableRawPointer, sockets: @escaping curl_socket_callback,
        timer: @escaping curl_multi_timer_callback
    ) throws(TransferFailure) {
        let codes = [
            watchword_curl_multi_set_socket_function(pointer, sockets, user),
            watchword_curl_multi_set_timer_function(pointer, timer, user),
        ]
        for code in codes where code != CURLM_OK { throw Self.failure(code) }
    }

    func add(_ easy: EasyHandle) throws(TransferFailure) {
        let code = curl_multi_add_handle(pointer, easy.pointer)
        guard code == CURLM_OK else { throw Self.failure(code) }
    }

    func remove(_ easy: EasyHandle) { check(curl_multi_remove_handle(pointer, easy.pointer)) }

    /// So many more connections wait for readers, and are not there for others: what these may have is not less for it.
    func hold(_ count: Int) {
        guard connectionsPerHost > 0 else { return }
        heldConnections += count
        check(
            watchword_curl_multi_set_long(
                pointer, CURLMOPT_MAX_HOST_CONNECTIONS, connectionsPerHost + heldConnections))
        check(
            watchword_curl_multi_set_long(
                pointer, CURLMOPT_MAX_TOTAL_CONNECTIONS, connections + min(heldConnections, connections)))
        if count > 0 { wakeWaiting() }
    }

    /// Who waits for a connection is looked at again only when a transfer goes.
    private func wakeWaiting() {
        guard let easy = curl_easy_init() else { return }
        if curl_multi_add_handle(pointer, easy) == CURLM_OK { check(curl_multi_remove_handle(pointer, easy)) }
        curl_easy_cleanup(easy)
    }

    /// The next transfer that has ended.
    func nextFinished() -> (easy: EasyHandle, code: CURLcode)? {
        var left: Int32 = 0
        while let message = curl_multi_info_read(pointer, &left) {
            guard message.pointee.msg == CURLMSG_DONE, let easy = message.pointee.easy_handle else { continue }
            return (EasyHandle(pointer: easy), watchword_curl_message_result(message))
        }
        return nil
    }

    /// Closes all connections. Every transfer must have been removed; nothing may be called afterwards.
    func close() { check(curl_multi_cleanup(pointer)) }

    private func set(_ option: CURLMoption, _ value: Int) throws(TransferFailure) {
        let code = watchword_curl_multi_set_long(pointer, option, value)
        guard code == CURLM_OK else { throw Self.failure(code) }
    }

    private static func failure(_ code: CURLMcode) -> TransferFailure {
        TransferFailure(
            code == CURLM_OUT_OF_MEMORY ? .outOfMemory : .internalError, String(cString: curl_multi_strerror(code)))
    }

    /// These calls fail only when they are used wrongly, or without memory.
    private func check(_ code: CURLMcode) {
        precondition(code == CURLM_OK, String(cString: curl_multi_strerror(code)))
    }
}
