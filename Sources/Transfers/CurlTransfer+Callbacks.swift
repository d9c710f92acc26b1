internal import CCurl
internal import WatchwordCore

extension EasyHandle {
    /// Sets the callbacks that all transfers share; called on the template. The callbacks call the transfer that owns the
    /// handle.
    func setCallbacks() throws(TransferFailure) {
        try set(socket: { owner, _, address in
            let transfer = CurlTransfer.at(owner)
            guard let address, transfer.mayConnect(to: address) else { return CURL_SOCKET_BAD }
            let socket = watchword_curl_socket(address)
            if socket != CURL_SOCKET_BAD { transfer.record(socket: socket) }
            return socket
        })
        try set(closing: { connections, socket in
            guard let connections else { preconditionFailure("libcurl closed a socket of no pool") }
            return Unmanaged<OpenConnections>.fromOpaque(connections).takeUnretainedValue().close(socket)
        })
        try set(request: { owner, address, ownAddress, port, ownPort in
            let isAdmitted = CurlTransfer.at(owner).maySend(to: address, port: port, from: ownAddress, ownPort)
            // guard: address-of-a-connection-from-before
            return isAdmitted ? CURL_PREREQFUNC_OK : CURL_PREREQFUNC_ABORT
        })
        try set(report: { _, kind, bytes, count, owner in
            CurlTransfer.at(owner).hear(kind, UnsafeRawBufferPointer(start: bytes, count: count))
            return 0
        })
        try set(context: { _, context, owner in
            guard let context else { return CURLE_SSL_CONNECT_ERROR }
            return CurlTransfer.at(owner).prepare(OpaquePointer(context)) ? CURLE_OK : CURLE_SSL_CERTPROBLEM
        })
        try set(CURLOPT_WRITEFUNCTION) { bytes, _, count, owner in
            CurlTransfer.at(owner).record(body: UnsafeRawBufferPointer(start: bytes, count: count)).result(count)
        }
        try set(CURLOPT_HEADERFUNCTION) { bytes, _, count, owner in
            let transfer = CurlTransfer.at(owner)
            guard transfer.record(header: UnsafeRawBufferPointer(start: bytes, count: count)) else { return 0 }
            // libcurl ignores a line without a name.
            if transfer.hidesLine() { bytes?.pointee = CChar(UInt8(ascii: ":")) }
            return count
        }
    }
}

extension CurlTransfer {
    /// Makes this transfer the owner of its handle, and sets the callbacks that only some transfers need.
    func takeCallbacks() throws(TransferFailure) {
        let owner = Unmanaged.passUnretained(self).toOpaque()
        for option in [
            CURLOPT_PRIVATE, CURLOPT_WRITEDATA, CURLOPT_HEADERDATA, CURLOPT_OPENSOCKETDATA, CURLOPT_SSL_CTX_DATA,
            CURLOPT_PREREQDATA, CURLOPT_DEBUGDATA,
        ] { try easy.set(option, pointer: owner) }
        if source != nil {
            try easy.set(CURLOPT_READDATA, pointer: owner)
            try easy.set(CURLOPT_READFUNCTION) { bytes, _, count, owner in
                CurlTransfer.at(owner).supply(UnsafeMutableRawBufferPointer(start: bytes, count: count))
            }
            try easy.set(
                seek: { owner, _, _ in CurlTransfer.at(owner).rewind() ? CURL_SEEKFUNC_OK : CURL_SEEKFUNC_FAIL }, owner)
        }
        if request.isTunnelled {
            try easy.set(progress: { owner, _, _, _, _ in CurlTransfer.at(owner).continues() ? 0 : 1 }, owner)
        }
    }

    static func at(_ owner: UnsafeMutableRawPointer?) -> CurlTransfer {
        guard let owner else { preconditionFailure("libcurl called back without an owner") }
        return Unmanaged<CurlTransfer>.fromOpaque(owner).takeUnretainedValue()
    }
}
