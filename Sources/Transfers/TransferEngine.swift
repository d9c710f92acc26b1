internal import CCurl
public import WatchwordCore

/// Makes exchanges with libcurl: one thread, one connection cache. Only for what leaves no identity on a connection, because
/// every transfer may get the connection of any other.
public actor TransferEngine: TransferPort {
    public nonisolated var unownedExecutor: UnownedSerialExecutor { thread.asUnownedSerialExecutor() }

    private let thread: EngineThread
    private let multi: MultiHandle
    private let caFile: String?
    private var transfers: [Int: Transfer] = [:]
    private var lastID = 0
    private var isClosed = false
    private var finished = 0
    private var connectionsOpened = 0
    private var connectionsReused = 0

    /// Starts the engine's thread; `shutDown` ends it.
    /// - Parameter caFile: certificates, in PEM, to be trusted in place of the system's.
    /// - Throws: `TransferFailure` when libcurl cannot start.
    public init(caFile: String? = nil) throws(TransferFailure) {
        try TransferLibrary.initialize()
        let multi = try MultiHandle()
        self.multi = multi
        self.caFile = caFile
        thread = EngineThread(multi)
        thread.start { [weak self] in
            self?.assumeIsolated { $0.turn() }
        }
    }

    public func perform(_ request: TransferRequest) async throws(TransferFailure) -> TransferResponse {
        lastID += 1
        let id = lastID
        let outcome = await withTaskCancellationHandler {
            await withCheckedContinuation { start(id, request, $0) }
        } onCancel: {
            // Comes after `start`, which is part of the job that runs now.
            Task { await self.cancel(id) }
        }
        return try outcome.get()
    }

    public func figures() -> TransferFigures {
        TransferFigures(
            engine: TransferLibrary.version, running: transfers.count, finished: finished,
            connectionsOpened: connectionsOpened, connectionsReused: connectionsReused)
    }

    /// Ends all transfers with `.cancelled`, closes all connections, and returns when the thread is gone. Further transfers
    /// end at once in the same way.
    public nonisolated func shutDown() async {
        guard await endTransfers() else { return }
        thread.stop()
        multi.close()
    }

    // MARK: On the engine's thread

    private func start(
        _ id: Int, _ request: TransferRequest, _ continuation: CheckedContinuation<Transfer.Outcome, Never>
    ) {
        guard !isClosed else {
            continuation.resume(returning: .failure(.shutDown))
            return
        }
        do throws(TransferFailure) {
            let transfer = try Transfer(id: id, request, caFile: caFile, continuation: continuation)
            do throws(TransferFailure) { try multi.add(transfer.easy) } catch {
                transfer.close()
                throw error
            }
            transfers[id] = transfer
        } catch {
            continuation.resume(returning: .failure(error))
        }
    }

    private func cancel(_ id: Int) {
        guard let transfer = transfers[id] else { return }
        end(transfer, .failure(TransferFailure(.cancelled, "The transfer was cancelled.")))
    }

    /// One round of libcurl: moves bytes, and hands over what is complete.
    private func turn() {
        guard !isClosed else { return }
        multi.perform()
        while let (easy, code) = multi.nextFinished() {
            let transfer = Transfer.at(easy.owner)
            let opened = easy.number(CURLINFO_NUM_CONNECTS)
            connectionsOpened += opened
            if opened == 0 && code == CURLE_OK { connectionsReused += 1 }
            end(transfer, transfer.outcome(code))
        }
    }

    private func end(_ transfer: Transfer, _ outcome: Transfer.Outcome) {
        transfers[transfer.id] = nil
        finished += 1
        multi.remove(transfer.easy)
        transfer.close()
        transfer.resume(with: outcome)
    }

    /// `false` when that was done before.
    private func endTransfers() -> Bool {
        guard !isClosed else { return false }
        isClosed = true
        for transfer in Array(transfers.values) { end(transfer, .failure(.shutDown)) }
        return true
    }
}

extension TransferFailure {
    fileprivate static let shutDown = TransferFailure(.cancelled, "The transfer engine is shut down.")
}
