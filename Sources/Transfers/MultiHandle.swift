internal import CCurl
internal import WatchwordCore

/// A libcurl multi handle: the transfers that run together, and the connections they leave for the next.
///
/// `@unchecked Sendable`: `wake` may be called on every thread (curl_multi_wakeup(3)); everything else only on the engine's.
final class MultiHandle: @unchecked Sendable {
    private let pointer: UnsafeMutableRawPointer

    /// - Throws: `TransferFailure` of kind `outOfMemory` or `internalError`.
    init() throws(TransferFailure) {
        guard let pointer = curl_multi_init() else {
            throw TransferFailure(.outOfMemory, "No memory for a transfer engine.")
        }
        self.pointer = pointer
        try set(CURLMOPT_MAXCONNECTS, EngineLimits.keptConnections)
        try set(CURLMOPT_MAX_HOST_CONNECTIONS, EngineLimits.connectionsPerHost)
        try set(CURLMOPT_PIPELINING, Int(CURLPIPE_MULTIPLEX))
    }

    func wake() { check(curl_multi_wakeup(pointer)) }

    func poll(milliseconds: Int32) { check(curl_multi_poll(pointer, nil, 0, milliseconds, nil)) }

    func perform() {
        var running: Int32 = 0
        check(curl_multi_perform(pointer, &running))
    }

    func add(_ easy: EasyHandle) throws(TransferFailure) {
        let code = curl_multi_add_handle(pointer, easy.pointer)
        guard code == CURLM_OK else { throw Self.failure(code) }
    }

    func remove(_ easy: EasyHandle) { check(curl_multi_remove_handle(pointer, easy.pointer)) }

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
