public import JSONText

/// A header section that was received: the bytes of its fields, and where they are. Fields are looked up and written without making
/// texts of them; as a collection it makes the texts of the fields that are read (`String.init(header:)`).
public struct HeaderBlock: Sendable, Equatable {
    private struct Place: Sendable, Equatable {
        /// The ends of name and value in `bytes`. The name begins at the end of the previous value.
        var name: Int
        var value: Int
    }

    private var bytes: [UInt8] = []
    private var places: [Place] = []

    public init() {}

    public init(_ fields: some Sequence<HeaderField>) {
        for field in fields {
            bytes += field.name.headerBytes
            let end = bytes.count
            bytes += field.value.headerBytes
            places.append(Place(name: end, value: bytes.count))
        }
    }

    /// - Parameter count: the expected number of fields.
    package mutating func reserve(bytes size: Int, fields count: Int) {
        bytes.reserveCapacity(size)
        places.reserveCapacity(count)
    }

    package mutating func append(name: UnsafeRawBufferPointer, value: UnsafeRawBufferPointer) {
        bytes.append(contentsOf: name)
        let end = bytes.count
        bytes.append(contentsOf: value)
        places.append(Place(name: end, value: bytes.count))
    }

    /// Appends a blank and `more` to the value of the last field, if there is one (RFC 9112 section 5.2).
    package mutating func continueLast(with more: UnsafeRawBufferPointer) {
        guard let last = places.indices.last else { return }
        bytes.append(0x20)
        bytes.append(contentsOf: more)
        places[last].value = bytes.count
    }

    private func name(at index: Int) -> Range<Int> { (index == 0 ? 0 : places[index - 1].value)..<places[index].name }

    private func value(at index: Int) -> Range<Int> { places[index].name..<places[index].value }

    private func text(_ range: Range<Int>) -> String {
        bytes.withUnsafeBytes { String(header: UnsafeRawBufferPointer(rebasing: $0[range])) }
    }

    // MARK: Fields by name

    /// Returns the place of the next field named `name`, without regard to ASCII case (RFC 9110 section 5.1).
    private func place(of name: String, from start: Int = 0) -> Int? {
        name.withBytes { wanted in
            bytes.withUnsafeBytes { bytes in
                places.indices[start...].first { index in
                    let range = self.name(at: index)
                    return range.count == wanted.count
                        && wanted.indices.allSatisfy {
                            bytes[range.lowerBound + $0].asciiLowercased == wanted[$0].asciiLowercased
                        }
                }
            }
        }
    }

    /// Returns the values of all fields named `name`, in order.
    public func values(of name: String) -> [String] {
        var values: [String] = []
        var next = place(of: name)
        while let place = next {
            values.append(text(value(at: place)))
            next = self.place(of: name, from: place + 1)
        }
        return values
    }

    /// Returns the value of the first field named `name`.
    public func firstValue(of name: String) -> String? { place(of: name).map { text(value(at: $0)) } }

    public func contains(_ name: String) -> Bool { place(of: name) != nil }
}

extension HeaderBlock: RandomAccessCollection, ExpressibleByArrayLiteral {
    public var startIndex: Int { 0 }
    public var endIndex: Int { places.count }

    public subscript(index: Int) -> HeaderField { HeaderField(text(name(at: index)), text(value(at: index))) }

    public init(arrayLiteral fields: HeaderField...) { self.init(fields) }
}

extension HeaderBlock {
    /// The fields as a list of pairs.
    public var json: JSON { Array(self).json }

    /// The bytes, in base64, of the reason phrase and the values that are not UTF-8; `nil` if there are none.
    public func rawBytes(reason: String = "") -> JSON? { Array(self).rawBytes(reason: reason) }

    /// Writes the fields as a list of pairs. Returns whether some of them may contain bytes that are not UTF-8.
    func write(to writer: inout JSONWriter) -> Bool {
        var isPlain = true
        bytes.withUnsafeBytes { bytes in
            func append(_ range: Range<Int>) {
                let text = UnsafeRawBufferPointer(rebasing: bytes[range])
                writer.separate()
                if text.allSatisfy({ $0 < 0x80 }) {
                    writer.append(text: text)
                } else {
                    isPlain = false
                    writer.append(String(header: text).readable)
                }
            }
            writer.beginArray()
            for index in places.indices {
                writer.separate()
                writer.beginArray()
                append(name(at: index))
                append(value(at: index))
                writer.endArray()
            }
            writer.endArray()
        }
        return !isPlain
    }
}
