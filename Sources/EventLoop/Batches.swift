/// A list whose elements are taken all at once. Two arrays are used alternately, so that their memory is reused.
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

    /// Returns the memory of a processed batch for reuse.
    mutating func giveBack(_ batch: consuming [Element]) {
        batch.removeAll(keepingCapacity: batch.count <= 256)
        spare = batch
    }
}
