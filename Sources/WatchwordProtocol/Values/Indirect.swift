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
