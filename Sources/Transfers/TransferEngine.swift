internal import CCurl
internal import Synchronization
public import WatchwordCore

/// Makes exchanges with libcurl: one thread, one connection cache. Only for what leaves no identity on a connection, because
/// every transfer may get the connection of any other.
public actor TransferEngine: TransferPort {
    public nonisolated var unownedExecutor: UnownedSerialExecutor { thread.asUnownedSerialExecutor() }

    private let thread: EngineThread
    private let multi: MultiHandle
    private let caFile: String?
    private let lastID = Atomic(0)
    private var transfers: [TransferID: Transfer] = [:]
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

    public nonisolated func start(
        _ request: TransferRequest, completion: @escaping @Sendable (Outcome) -> Void
    ) -> TransferID {
        let id = TransferID(value: lastID.add(1, ordering: .relaxed).newValue)
        thread.post { self.assumeIsolated { $0.begin(id, request, completion) } }
        return id
    }

    public nonisolated func cancel(_ id: TransferID) {
        thread.post { self.assumeIsolated { $0.end(id, .failure(.cancelled)) } }
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

    private func begin(_ id: TransferID, _ request: TransferRequest, _ completion: @escaping Transfer.Completion) {
        guard !isClosed else { return completion(.failure(.shutDown)) }
        do throws(TransferFailure) {
            let transfer = try Transfer(id: id, request, caFile: caFile, completion: completion)
            do throws(TransferFailure) { try multi.add(transfer.easy) } catch {
                transfer.close()
                throw error
            }
            transfers[id] = transfer
        } catch {
            completion(.failure(error))
        }
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
            end(transfer.id, transfer.outcome(code))
        }
    }

    private func end(_ id: TransferID, _ outcome: Outcome) {
        guard let transfer = transfers.removeValue(forKey: id) else { return }
        finished += 1
        multi.remove(transfer.easy)
        transfer.close()
        transfer.completion(outcome)
    }

    /// `false` when that was done before.
    private func endTransfers() -> Bool {
        guard !isClosed else { return false }
        isClosed = true
        for id in Array(transfers.keys) { end(id, .failure(.shutDown)) }
        return true
    }
}

extension TransferFailure {
    fileprivate static let cancelled = TransferFailure(.cancelled, "The transfer was cancelled.")
    fileprivate static let shutDown = TransferFailure(.cancelled, "The transfer engine is shut down.")
}
