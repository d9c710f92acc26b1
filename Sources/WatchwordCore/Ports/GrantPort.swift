/// Where grants that last are written down. They hold no secret: who may use what.
public protocol GrantPort: LastingPort {
    /// As they were kept last; empty where nothing was, or where nothing can be read.
    func standingGrants() -> [StandingGrant]

    /// Replaces what was kept: all of it, or nothing. It does not wait for the disk; whoever cannot write logs why.
    func keep(_ grants: [StandingGrant])
}
