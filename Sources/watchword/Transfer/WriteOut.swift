import ArgumentParser
import JSONText
import WatchwordProtocol

/// The format of `-w` (curl(1), "--write-out").
struct WriteOut {
    enum Variable: String, CaseIterable {
        case contentType = "content_type"
        case exitCode = "exitcode"
        case httpCode = "http_code"
        case httpVersion = "http_version"
        case json
        case method
        case responseCode = "response_code"
        case scheme
        case sizeDownload = "size_download"
        case timeTotal = "time_total"
        case url
        case effectiveURL = "url_effective"
        case user = "watchword_user"
        case source = "watchword_source"
    }

    private enum Part {
        case text(String)
        case variable(Variable)
    }

    private var parts: [Part] = []

    /// - Throws: `ValidationError` for a variable that is not here.
    init(_ format: String) throws {
        guard !format.hasPrefix("@") else {
            throw ValidationError("-w takes the format itself, and not the name of a file that holds it.")
        }
        var rest = format[...]
        var text = ""
        while let character = rest.popFirst() {
            if character == "\\", let escaped = rest.popFirst() {
                text += Self.escapes[escaped] ?? "\\\(escaped)"
            } else if character == "%", rest.first == "%" {
                text.append(rest.removeFirst())
            } else if character == "%", rest.first == "{", let end = rest.firstIndex(of: "}") {
                let name = String(rest[rest.index(after: rest.startIndex)..<end])
                guard let variable = Variable(rawValue: name) else {
                    let known = Variable.allCases.map(\.rawValue).joined(separator: ", ")
                    throw ValidationError("-w knows no variable \(name.shortened). There are: \(known).")
                }
                parts += [.text(text), .variable(variable)]
                text = ""
                rest = rest[rest.index(after: end)...]
            } else {
                text.append(character)
            }
        }
        parts.append(.text(text))
    }

    private static let escapes: [Character: String] = ["n": "\n", "r": "\r", "t": "\t", "\\": "\\"]

    func text(_ facts: Facts) -> String {
        parts.map { part in
            switch part {
            case .text(let text): text
            case .variable(let variable): facts.value(of: variable)
            }
        }.joined()
    }

    /// What has become of a transfer.
    struct Facts {
        private let params: FetchRunParams
        private let head: ResponseHead?
        private let result: JSON?
        private let receivedBytes: Int
        private let code: ExitCode

        init(_ params: FetchRunParams, _ head: ResponseHead?, _ result: JSON?, receivedBytes: Int, code: ExitCode) {
            (self.params, self.head, self.result) = (params, head, result)
            (self.receivedBytes, self.code) = (receivedBytes, code)
        }

        func value(of variable: Variable) -> String {
            switch variable {
            case .contentType: head?.headers.firstValue(of: "Content-Type") ?? ""
            case .exitCode: "\(code.rawValue)"
            case .httpCode, .responseCode: padded(head?.status ?? 0)
            case .httpVersion: head?.httpVersion ?? "0"
            case .json: (result ?? [:]).line
            case .method: params.method
            case .scheme: url.firstRange(of: "://").map { url[..<$0.lowerBound].uppercased() } ?? ""
            case .sizeDownload: "\(receivedBytes)"
            case .timeTotal: seconds
            case .url: params.url
            case .effectiveURL: url
            case .user: result?["auth"]?["user"]?.string ?? ""
            case .source: result?["auth"]?["source"]?.string ?? ""
            }
        }

        private var url: String { result?["url"]?.string ?? params.url }

        /// curl writes 000 where nothing came.
        private func padded(_ status: Int) -> String { status == 0 ? "000" : "\(status)" }

        private var seconds: String {
            let total = result?["timingsMs"]?["total"]
            let milliseconds = total?.number ?? 0
            let microseconds = Int(milliseconds * 1000)
            let fraction = "\(microseconds % 1_000_000)"
            return "\(microseconds / 1_000_000).\(String(repeating: "0", count: 6 - fraction.count))\(fraction)"
        }
    }
}
