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

/// Stores a large value behind a reference, so that the type that contains it stays small and cheap to copy.
@propertyWrapper
public struct Indirect<Value: Sendable>: Sendable {
    @usableFromInline var box: Boxed<Value>

    @inlinable public init(wrappedValue: Value) { box = Boxed(wrappedValue) }

    @inlinable public var wrappedValue: Value {
        _read { yield box.value }
        set { box = Boxed(newValue) }
    }

    /// The reference, to be shared without a copy of the value.
    @inlinable public var projectedValue: Indirect { self }
}

extension Indirect: Equatable where Value: Equatable {}

/// Stores a large value, if there is one, behind a reference.
@propertyWrapper
public struct IndirectOptional<Value: Sendable>: Sendable {
    @usableFromInline var box: Boxed<Value>?

    @inlinable public init(wrappedValue: Value? = nil) { box = wrappedValue.map { Boxed($0) } }

    @inlinable public var wrappedValue: Value? {
        get { box?.value }
        set { box = newValue.map { Boxed($0) } }
    }
}

extension IndirectOptional: Equatable where Value: Equatable {}
