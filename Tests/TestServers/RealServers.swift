import Glibc
package import Testing

extension Trait where Self == ConditionTrait {
    /// For suites that start a message bus, a KDC or another program: `contrib/test` runs them, and `swift test` alone, which needs
    /// nothing but the compiler and the libraries, says that it does not.
    package static var realServers: Self {
        .enabled(if: getenv("WATCHWORD_TEST_SERVERS") != nil, "needs real servers: contrib/test runs it")
    }
}
