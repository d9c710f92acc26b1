import Glibc
package import WatchwordProtocol

/// A temporary file for one test.
package struct TemporaryFile {
    package let path: String

    package init(_ text: String) throws { self.init(Array(text.utf8)) }

    package init(_ bytes: Secret) throws { self.init(bytes.withUnsafeBytes { Array($0) }) }

    private init(_ bytes: [UInt8]) {
        var template = Array("/tmp/watchword-test-XXXXXX".utf8CString)
        let file = mkstemp(&template)
        precondition(file >= 0, "no temporary file for a test")
        path = template.withUnsafeBufferPointer { String(cString: $0.baseAddress!) }
        precondition(Glibc.write(file, bytes, bytes.count) == bytes.count)
        close(file)
    }

    package func write(_ text: String) {
        let file = open(path, O_WRONLY | O_TRUNC | O_CLOEXEC)
        precondition(file >= 0 && Glibc.write(file, text, text.utf8.count) == text.utf8.count)
        close(file)
    }

    package func remove() { unlink(path) }
}
