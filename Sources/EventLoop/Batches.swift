/// What is collected and taken together, again and again, without new memory each time.
struct Batches<Element> {
    private var collected: [Element] = []
    private var spare: [Element] = []

    var isEmpty: Bool { collected.isEmpty }

    mutating func append(_ element: Element) { collected.append(element) }

    mutating func take() -> [Element] {
        defer {
            collected = spare
            spare = []
        }
        return collected
    }

    /// The memory of a batch that is done with.
    mutating func giveBack(_ batch: consuming [Element]) {
        batch.removeAll(keepingCapacity: batch.count <= 256)
        spare = batch
    }
}
