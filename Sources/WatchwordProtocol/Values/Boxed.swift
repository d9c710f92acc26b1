/// A large value behind a reference: copies of the box share the value.
@dynamicMemberLookup
public final class Boxed<Value: Sendable>: Sendable {
    public let value: Value

    public init(_ value: Value) { self.value = value }

    // Inlined, the key path is a plain access.
    @inlinable public subscript<Part>(dynamicMember part: KeyPath<Value, Part>) -> Part { value[keyPath: part] }

    /// Returns a box with a changed copy of the value.
    public func changed(_ change: (inout Value) -> Void) -> Boxed {
        var copy = value
        change(&copy)
        return Boxed(copy)
    }
}

extension Boxed: Equatable where Value: Equatable {
    public static func == (one: Boxed, other: Boxed) -> Bool { one === other || one.value == other.value }
}
