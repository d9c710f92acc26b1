import ArgumentParser
import Broker
import Configuration
import Glibc
import WatchwordCore

/// Where the configuration comes from.
struct ConfigurationSource {
    /// `nil` when there is no place for one: neither $XDG_CONFIG_HOME nor $HOME is set.
    let path: String?
    private let isExplicit: Bool

    init(explicit: String?) {
        path = explicit ?? SettingsFile.path { name in getenv(name).map { String(cString: $0) } }
        isExplicit = explicit != nil
    }

    func load() throws(StartFailure) -> Settings {
        guard let path else { return Settings() }
        if isExplicit, access(path, F_OK) != 0 {
            throw StartFailure("The file \(path) given as --config does not exist.")
        }
        let settings: Settings
        do {
            settings = try SettingsFile.load(path).get()
        } catch {
            throw StartFailure("\(path) is not in order.\n\(error)")
        }
        // Rather no broker than one that goes around the proxy.
        if let url = settings.proxyURL, (try? ProxyEndpoint(url)) == nil {
            throw StartFailure("\(path) is not in order.\nproxy.url: This proxy cannot be used.")
        }
        return settings
    }

    /// `--check-config`.
    func check() throws {
        do {
            _ = try load()
            print("\(path ?? "No file"): in order.")
        } catch {
            let line = Array("\(error.text)\n".utf8)
            _ = write(STDERR_FILENO, line, line.count)
            throw ExitCode(1)
        }
    }
}

extension BrokerOptions {
    /// - Parameter challengeDeadline: of the command line, where it was given.
    mutating func apply(_ settings: Settings, challengeDeadline: Duration?) {
        self.challengeDeadline = challengeDeadline ?? settings.challengeDeadline
        session = SessionLimits(
            entries: settings.sessionEntries, idle: settings.sessionIdle, lifetime: settings.sessionLifetime)
        isKeyringEnabled = settings.keyringEnabled
        hosts = HostRules(allowed: settings.allowedHosts, denied: settings.deniedHosts)
        // `load` has seen that it is one.
        let endpoint = settings.proxyURL.flatMap { try? ProxyEndpoint($0) }
        proxy = ProxyRule(endpoint: endpoint, exceptions: settings.proxyExceptions)
        schemes = SchemeRules(
            negotiateHosts: settings.negotiateHosts, delegationHosts: settings.delegationHosts,
            ntlmHosts: settings.ntlmHosts,
            sites: settings.schemeOrders.map { SchemeRules.Site(hosts: [$0.hosts], order: $0.order) })
        schemes.allowsWeak = settings.allowsWeak
        handOuts = settings.handOuts
        netrcFile = settings.netrcFile
        sharing =
            switch settings.sharing {
            case .user: .user
            case .client: .client
            case .ask: .ask
            }
    }
}
