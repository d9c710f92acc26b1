import Foundation
import TestEnvironment

/// The folder of this process's Kerberos realm and PKCS#11 tokens, which the environment names from the start. It is removed at
/// the end of the process.
enum TestFolder {
    static let path: String = {
        let path = String(cString: watchword_test_folder())
        precondition(mkdir(path, 0o700) == 0, "\(path) cannot be made")
        atexit { _ = try? FileManager.default.removeItem(atPath: String(cString: watchword_test_folder())) }
        return path
    }()
}
