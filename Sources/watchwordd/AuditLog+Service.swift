public import AuditTrail
import Broker
import Configuration
import Glibc
import Logging
public import WatchwordCore
import WatchwordProtocol

extension AuditLog: AuditPort {}

extension AuditLog {
    /// Returns `nil` without a state directory, because neither $XDG_STATE_HOME nor $HOME is set.
    convenience init?(_ settings: Settings, log: Logger) {
        guard let folder = StateLocation.folder(environment: ProcessEnvironment.text) else { return nil }
        self.init(folder: folder, isEnabled: settings.auditEnabled, limits: AuditLimits(settings)) { report in
            switch report {
            case .failed(let failure):
                log.error(
                    "cannot write the audit log; events are lost until this is fixed",
                    metadata: ["reason": "\(failure.text)"])
            case .recovered(let lost):
                log.notice("the audit log is written again", metadata: ["lost": "\(lost)"])
            case .leftOut(let failure):
                log.warning("an old file of the audit log was left out", metadata: ["reason": "\(failure.text)"])
            case .ended(let lost):
                log.error("events are missing at the end of the audit log", metadata: ["lost": "\(lost)"])
            }
        }
    }
}

extension AuditLimits {
    init(_ settings: Settings) {
        self.init(fileBytes: settings.auditFileBytes, oldFiles: settings.auditOldFiles)
    }
}
