import ArgumentParser
import Broker
import CPlatform
import Configuration
import Glibc
import WatchwordCore
import WatchwordProtocol

/// The configuration file.
struct ConfigurationSource {
    /// `nil` if `--config` is not given and neither $XDG_CONFIG_HOME nor $HOME is set.
    let path: String?
    private let isExplicit: Bool

    init(explicit: String?) {
        path = explicit ?? ConfigurationLocation.path(environment: ProcessEnvironment.text)
        isExplicit = explicit != nil
    }

    func load() throws(StartFailure) -> Settings {
        guard let path else { return Settings() }
        if isExplicit, access(path, F_OK) != 0 {
            throw StartFailure("configuration file \(path) does not exist; create it, or correct --config")
        }
        var settings: Settings
        do {
            settings = try SettingsFile.load(path).get()
        } catch {
            throw StartFailure("invalid configuration file \(path):\n\(error)")
        }
        // An invalid proxy URL is an error, because requests must not bypass the proxy.
        for text in [settings.proxyURL].compactMap(\.self) + settings.proxyRules.flatMap(\.use)
        where (try? Upstream(text)) == nil {
            throw StartFailure(
                "invalid configuration file \(path):\nproxy: invalid proxy URL; use http://host:port, https://host:port or socks5h://host:port"
            )
        }
        settings.readClientSecrets(home: ProcessEnvironment.text("HOME"))
        watchword_clear_stack()
        return settings
    }

    /// `--check-config`: prints whether the configuration is valid.
    /// - Throws: `ExitCode(1)` if the configuration is invalid.
    func check() throws {
        do throws(StartFailure) {
            let problems = try load().fileProblems
            guard let path else { return print("no configuration file; the defaults apply") }
            guard problems.isEmpty else {
                let lines = InvalidSettings.text(problems)
                throw StartFailure("invalid configuration file \(path):\n\(lines)")
            }
            print(access(path, F_OK) == 0 ? "\(path): valid" : "\(path) does not exist; the defaults apply")
        } catch {
            let line = Array("\(error.text)\n".utf8)
            _ = write(STDERR_FILENO, line, line.count)
            throw ExitCode(1)
        }
    }
}

extension BrokerOptions {
    /// - Parameter challengeDeadline: the value from the command line, if given.
    mutating func apply(_ settings: Settings, challengeDeadline: Duration?) {
        self.challengeDeadline = challengeDeadline ?? settings.challengeDeadline
        session = SessionLimits(
            entries: settings.sessionEntries, idle: settings.sessionIdle, lifetime: settings.sessionLifetime)
        isKeyringEnabled = settings.keyringEnabled
        hosts = HostRules(allowed: settings.allowedHosts, denied: settings.deniedHosts)
        // `load` has checked that the URL is valid.
        let endpoint = settings.proxyURL.flatMap { try? ProxyEndpoint($0) }
        proxy = ProxyRule(
            endpoint: endpoint, exceptions: settings.proxyExceptions,
            rules: settings.proxyRules.map { rule in
                UpstreamRule(hosts: rule.hosts, upstreams: rule.use.compactMap { try? Upstream($0) })
            })
        upstreamSource = settings.proxyPAC.map { .pac($0) } ?? (settings.usesDesktopProxy ? .desktop : nil)
        schemes = SchemeRules(
            negotiateHosts: settings.negotiateHosts, delegationHosts: settings.delegationHosts,
            ntlmHosts: settings.ntlmHosts,
            sites: settings.schemeOrders.map { SchemeRules.Site(hosts: [$0.hosts], order: $0.order) })
        schemes.latin1Hosts = settings.latin1Hosts
        schemes.allowsWeak = settings.allowsWeak
        releaseRules = settings.releaseRules
        netrcFile = settings.netrcFile
        credentialCommands = settings.credentialCommands
        oauthRules = OAuthPresets.completing(settings.oauthRules)
        fronts.proxy = settings.frontProxy
        fronts.hosts = settings.frontHosts
        fronts.tunnelPorts = Set(settings.frontTunnelPorts)
        fronts.sites = settings.frontSites.map { ($0.address, $0.site) }
        sharing =
            switch settings.sharing {
            case .user: .user
            case .client: .client
            case .ask: .ask
            }
    }
}
