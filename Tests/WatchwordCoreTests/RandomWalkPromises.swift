import WatchwordProtocol

@testable import WatchwordCore

/// The broker's invariants, checked after each event.
extension RandomWalk {
    // MARK: Invariants of a request

    /// Credentials are sent only to the target that they were provided for, and a connection with an identity is not shared.
    private mutating func check(_ request: TransferRequest, of id: FetchID, _ fetch: Fetch) {
        let place = "\(request.url.origin.scheme.rawValue)://\(request.url.origin.host)"
        if !fetch.proxyHosts(for: request.url.origin, proxy).contains(request.proxy?.host) { problem = "a wrong proxy" }
        if let sent = request.sent, sent != "Negotiate", meant[place]?.contains(sent) != true {
            problem = "a credential of another server went to \(place)"
        }
        if let sent = request.proxyLogin, meant[request.proxy?.host ?? ""]?.contains(sent) != true {
            problem = "a credential of something else went to a proxy"
        }
        if let shown = request.shownCertificate, meant[place]?.contains(shown) != true {
            problem = "a certificate went to \(place)"
        }
        if let key = request.trustedKey, trusted[place]?.contains(key) != true, problems(at: place) != [],
            fetch.pin?.first != key
        {
            problem = "no exception trusts \(place)"
        }
        let isSteered = request.proxy?.host == "q" || request.trustedKey != nil && problems(at: place) != []
        if isSteered {
            fetches[id]?.isApart = true
            if request.sent == "Negotiate" || request.isFromKeyring {
                problem = "a stored credential was sent with a steered request"
            }
        }
        let connectionKey = request.connectionKey(at: place)
        switch request.identity {
        case .none:
            if !connectionKey.isEmpty { problem = "an authenticated connection has no number" }
        case .number(let number):
            if let known = connectionKeys.updateValue(connectionKey, forKey: number), known != connectionKey {
                problem = "connections \(number) are of several"
            }
            if closed.contains(number) { problem = "connections \(number) were closed" }
            if let key = request.trustedKey, remembered[place]?.contains(key) != true {
                fetches[id]?.identities.insert(number)
                if fetches.contains(where: { $0.key != id && $0.value.identities.contains(number) }) {
                    problem = "an exception for one fetch serves another"
                }
            }
        }
    }

    private func problems(at place: String) -> Set<ServerTrustFacts.Problem> {
        Self.places.first { $0.name == place }?.problems ?? []
    }

    /// SECURITY-RULES X1: without an answer nothing is sent, except a request without the certificate that was asked for.
    mutating func checkSilence(_ orders: [FetchTable.Order], of id: FetchID) {
        if case .ask(let challenge, _)? = pending[id],
            challenge.protectionSpace.authenticationMethod == .clientCertificate
        {
            // The missing answer applies to waiting fetches of the same client, too.
            let client = fetches[id]?.client
            for other in fetches.keys where fetches[other]?.client == client { fetches[other]?.sharesStorage = false }
        }
        for case .transfer(let request) in orders.compactMap({ $0.command(of: id) }) {
            guard case .ask(let challenge, _)? = pending[id],
                challenge.protectionSpace.authenticationMethod == .clientCertificate, request.shownCertificate == nil
            else {
                problem = "\(id) was not answered, and sent something"
                return
            }
        }
    }

    // MARK: Invariants of the results of an event

    /// - Parameter id: the fetch that received the event: only this fetch, and fetches that waited for it, may get orders.
    mutating func take(_ orders: [FetchTable.Order], after id: FetchID?, isOver: Bool = true) {
        let before = id.flatMap { pending[$0] }
        if let id, isOver { pending[id] = nil }
        var left: [Fetch] = []
        for order in orders {
            reached.insert(order.name)
            switch order {
            case .effect(let effect, let fetch): check(effect, of: fetch, after: before)
            case .command(let command, let fetch): check(command, of: fetch, &left)
            }
            if problem != nil { return }
        }
        if let id, fetches[id] != nil, pending[id] == nil { problem = "\(id) waits for nothing" }
        if !left.allSatisfy({ closed.isSuperset(of: $0.identities) }) { problem = "an exception outlives its fetch" }
        checkOnce()
    }

    /// - Parameter command: what the fetch had done whose event that was.
    private mutating func check(_ effect: FetchEffect, of fetch: FetchID?, after command: FetchCommand?) {
        switch effect {
        case .audit(let note): checkConsent(to: note, of: fetch)
        case .closeConnections(.number(let number)): closed.insert(number)
        case .store(_, let pattern): checkStored(pattern, after: command)
        case .announce(let change) where change.kind == .stored:
            if let pattern = change.space { checkStored(pattern, after: command) }
        case .storeTrust(let keys):
            for key in keys where remembered["https://\(key.origin.host)"]?.contains(key.spkiSha256[0]) != true {
                problem = "no permanent exception trusts \(key.origin.text)"
            }
        case .notify, .report, .announce, .remove, .closeConnections, .storeConsents: break
        }
    }

    private mutating func check(_ command: FetchCommand, of fetch: FetchID, _ left: inout [Fetch]) {
        guard let known = fetches[fetch] else {
            problem = "\(fetch) is over, and got \(command.name)"
            return
        }
        if let before = pending[fetch], !before.isWait, command.name != "fail" {
            problem = "\(fetch) waits for \(before.name), and got \(command.name)"
            return
        }
        unproven.removeAll { $0.fetch == fetch }
        switch command {
        case .finish, .fail:
            pending[fetch] = nil
            fetches[fetch] = nil
            left.append(known)
            ended += 1
        case .transfer(let request):
            pending[fetch] = command
            if let trial = request.trial { recordSending(of: trial, fetch) }
            check(request.value, of: fetch, known)
        default: pending[fetch] = command
        }
    }

    /// A program uses another program's stored credential only with consent.
    private mutating func checkConsent(to note: AuditRecord, of id: FetchID?) {
        guard let fetch = id.flatMap({ fetches[$0] }), let subject = fetch.subject, note.kind == .credentialUsed,
            [.keyring, .ambient, .netrc].contains(note.source)
        else { return }
        let isGranted = table.grants.contains { grant in
            grant.subject == subject && SpacePattern(grant.space) == note.space && grant.user == note.user
                && grant.consent != .no
        }
        let isConsented = fetch.consented.contains { SpacePattern($0.space) == note.space && $0.user == note.user }
        if !isGranted && !isConsented { problem = "\(subject.text) uses a credential without consent" }
    }

    /// - Parameter command: what the fetch had done whose event that was.
    private mutating func checkStored(_ pattern: SpacePattern, after command: FetchCommand?) {
        guard case .transfer(let request)? = command else { return }
        let place = "\(request.url.origin.scheme.rawValue)://\(request.url.origin.host)"
        // The exception itself is stored, if the answer says so.
        let isException =
            request.trustedKey != nil && problems(at: place) != [] && pattern.proxyType == nil
            && pattern.authenticationMethod != .serverTrust
        if request.proxy?.host == "q" || isException { problem = "the credential of a steered request is stored" }
    }

    private mutating func recordSending(of trial: String, _ fetch: FetchID) {
        let isOpen = accepted[trial].map { now - $0 <= Limits.pauseBetweenRequests } ?? false
        if !unproven.contains(where: { $0.trial == trial }) {
            let isFresh = accepted[trial].map { now - $0 < Limits.acceptanceAge } ?? false
            windows[trial] = max(isOpen ? windows[trial] ?? 1 : 1, isFresh ? Limits.unprovenAttempts : 1)
        }
        unproven.append((fetch, trial, now))
        let sent = unproven.filter { $0.trial == trial }
        let window = windows[trial] ?? 1
        let patience = accepted[trial] == nil ? Limits.verdictWait : Limits.knownVerdictWait
        // One more is sent each time that a verdict takes long.
        let isOverdue = sent.dropLast().allSatisfy { now - $0.sentAt >= patience }
        if sent.count > window && !(isOverdue && sent.count <= Limits.unprovenAttempts) {
            problem =
                "\(trial) is tried \(sent.count) times at once: \(sent.map { ($0.fetch, $0.sentAt) }), \(now), \(String(describing: accepted[trial]))"
        }
    }

    /// SEMANTICS rule 22: an acceptance proves all that was sent before, and doubles the window.
    mutating func recordAcceptance(of trial: String, _ fetch: FetchID) {
        accepted[trial] = now
        guard let index = unproven.firstIndex(where: { $0.fetch == fetch && $0.trial == trial }) else { return }
        windows[trial] = 2 * max(windows[trial] ?? 1, Limits.unprovenAttempts)
        let proven = Set(unproven[...index].filter { $0.trial == trial }.map(\.fetch))
        unproven.removeAll { $0.trial == trial && proven.contains($0.fetch) }
    }

    /// SEMANTICS rule 20: one question at a time.
    private mutating func checkOnce() {
        var questions: Set<AskedOnce> = []
        for (id, command) in pending {
            guard let fetch = fetches[id] else { continue }
            switch command {
            case .ask(let challenge, _)
            where fetch.sharesStorage && !fetch.namesUser && !fetch.isApart && !isPrivate.contains(id):
                if fetch.pinsAlways, challenge.protectionSpace.authenticationMethod == .serverTrust { continue }
                let key = AskedOnce(challenge)
                if !questions.insert(key).inserted {
                    problem = "two questions about \(key.space.host), \(key.space.authenticationMethod)"
                }
            default: break
            }
        }
    }
}
