internal import WatchwordProtocol

extension ClientCertificate {
    init(_ credential: CertificateCredential) {
        self.init(
            certificate: Material(credential.certificate), privateKey: credential.privateKey.map(Material.init),
            passphrase: credential.passphrase)
        expectedContent = credential.acceptedContent
    }
}

extension ClientCertificate.Material {
    /// Creates material from a path, a PKCS #11 URI or PEM text; only the text can be secret.
    init(_ text: Secret) {
        let (path, uri) = text.withUnsafeBytes { bytes in
            let isPath = bytes.first == UInt8(ascii: "/")
            let isURI = bytes.starts(with: "pkcs11:".utf8)
            let name = isPath || isURI ? String(validating: bytes, as: UTF8.self) : nil
            return (isPath ? name : nil, isURI ? name : nil)
        }
        self = path.map { .file($0) } ?? uri.map { .token(uri: $0) } ?? .bytes(text)
    }
}
