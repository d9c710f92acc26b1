internal import CCurl
internal import WatchwordCore

/// A libcurl multi handle: concurrent transfers, and the connections that they share. Used on one loop.
final class MultiHandle {
    private let pointer: UnsafeMutableRawPointer
    private let connectionsPerHost: Int
    /// The limit for connections to all hosts.
    private let connections: Int
    private var heldConnections = 0
    /// The number of transfers in the handle.
    private(set) var running = 0

    /// - Parameter connectionsPerHost: the limit; further transfers wait for a connection. 0 for no limit.
    /// - Throws: `TransferFailure` of kind `outOfMemory` or `internalError`.
    init(connectionsPerHost: Int = EngineLimits.connectionsPerHost) throws(TransferFailure) {
        guard let pointer = curl_multi_init() else {
            throw TransferFailure(.outOfMemory, "out of memory for a transfer engine")
        }
        self.pointer = pointer
        self.connectionsPerHost = connectionsPerHost
        connections = EngineLimits.connections
        try set(CURLMOPT_MAXCONNECTS, min(EngineLimits.cachedConnections, connections))
        try set(CURLMOPT_MAX_TOTAL_CONNECTIONS, connections)
        try set(CURLMOPT_MAX_HOST_CONNECTIONS, connectionsPerHost)
        try set(CURLMOPT_PIPELINING, Int(CURLPIPE_MULTIPLEX))
    }

    /// Continues the transfers that wait for `socket`, or for a timer if it is `CURL_SOCKET_TIMEOUT`.
    func act(on socket: curl_socket_t, _ events: Int32 = 0) {
        var running: Int32 = 0
        check(curl_multi_socket_action(pointer, socket, events, &running))
    }

    /// Sets the callbacks that say which sockets to watch and when to call `act`. `user` must outlive this handle.
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
        running += 1
    }

    func remove(_ easy: EasyHandle) {
        check(curl_multi_remove_handle(pointer, easy.pointer))
        running -= 1
    }

    /// Adds `count`, which may be negative, to the number of connections that wait for the reader of a body. The
    /// connection limits are raised by that number, so that these connections do not count.
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

    /// Makes libcurl start transfers that wait for a connection, which it does only when a transfer is removed.
    private func wakeWaiting() {
        guard let easy = curl_easy_init() else { return }
        if curl_multi_add_handle(pointer, easy) == CURLM_OK { check(curl_multi_remove_handle(pointer, easy)) }
        curl_easy_cleanup(easy)
    }

    /// Returns the next finished transfer; `nil` if there is none.
    func nextFinished() -> (easy: EasyHandle, code: CURLcode)? {
        var left: Int32 = 0
        while let message = curl_multi_info_read(pointer, &left) {
            guard message.pointee.msg == CURLMSG_DONE, let easy = message.pointee.easy_handle else { continue }
            return (EasyHandle(pointer: easy), watchword_curl_message_result(message))
        }
        return nil
    }

    /// Closes all connections. Every transfer must have been removed. The handle must not be used afterwards.
    func close() { check(curl_multi_cleanup(pointer)) }

    private func set(_ option: CURLMoption, _ value: Int) throws(TransferFailure) {
        let code = watchword_curl_multi_set_long(pointer, option, value)
        guard code == CURLM_OK else { throw Self.failure(code) }
    }

    private static func failure(_ code: CURLMcode) -> TransferFailure {
        TransferFailure(
            code == CURLM_OUT_OF_MEMORY ? .outOfMemory : .internalError, String(cString: curl_multi_strerror(code)))
    }

    /// Aborts the program if `code` is an error: these calls fail only if they are misused or memory is exhausted.
    private func check(_ code: CURLMcode) {
        precondition(code == CURLM_OK, String(cString: curl_multi_strerror(code)))
    }
}
