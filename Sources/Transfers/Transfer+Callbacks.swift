internal import CCurl
internal import WatchwordCore

extension EasyHandle {
    /// Lets libcurl call the transfer that owns a handle: what all have in common, for a template.
    func setCallbacks() throws(TransferFailure) {
        try set(socket: { owner, _, address in
            guard let address, Transfer.at(owner).mayConnect(to: address) else { return CURL_SOCKET_BAD }
            return watchword_curl_socket(address)
        })
        try set(context: { _, context, owner in
            guard let context else { return CURLE_SSL_CONNECT_ERROR }
            return Transfer.at(owner).prepare(OpaquePointer(context)) ? CURLE_OK : CURLE_SSL_CERTPROBLEM
        })
        try set(CURLOPT_WRITEFUNCTION) { bytes, _, count, owner in
            Transfer.at(owner).record(body: UnsafeRawBufferPointer(start: bytes, count: count)).result(count)
        }
        try set(CURLOPT_HEADERFUNCTION) { bytes, _, count, owner in
            Transfer.at(owner).record(header: UnsafeRawBufferPointer(start: bytes, count: count)) ? count : 0
        }
    }
}

extension Transfer {
    /// Makes this transfer the one that libcurl calls, and asks for what only some need.
    func takeCallbacks() throws(TransferFailure) {
        let owner = Unmanaged.passUnretained(self).toOpaque()
        for option in [
            CURLOPT_PRIVATE, CURLOPT_WRITEDATA, CURLOPT_HEADERDATA, CURLOPT_OPENSOCKETDATA, CURLOPT_SSL_CTX_DATA,
        ] { try easy.set(option, pointer: owner) }
        if !gate.isOpen || request.boundEndPoint != nil {
            try easy.set(
                request: { owner, address, _, port, _ in
                    let isAdmitted = Transfer.at(owner).maySend(to: address, port: port)
                    return isAdmitted ? CURL_PREREQFUNC_OK : CURL_PREREQFUNC_ABORT
                }, owner)
        }
        if source != nil {
            try easy.set(CURLOPT_READDATA, pointer: owner)
            try easy.set(CURLOPT_READFUNCTION) { bytes, _, count, owner in
                Transfer.at(owner).give(UnsafeMutableRawBufferPointer(start: bytes, count: count))
            }
            try easy.set(
                seek: { owner, _, _ in Transfer.at(owner).rewind() ? CURL_SEEKFUNC_OK : CURL_SEEKFUNC_FAIL }, owner)
        }
        if request.isTunnelled {
            try easy.set(progress: { owner, _, _, _, _ in Transfer.at(owner).goesOn() ? 0 : 1 }, owner)
        }
    }

    static func at(_ owner: UnsafeMutableRawPointer?) -> Transfer {
        guard let owner else { preconditionFailure("libcurl calls back without its owner") }
        return Unmanaged<Transfer>.fromOpaque(owner).takeUnretainedValue()
    }
}
