import Testing

@testable import WatchwordCore

/// Queues of respondents that limit the number of open questions.
@Suite struct QuestionQueueTests {
    @Test func withoutALimitEverythingIsDeliveredAtOnce() {
        var queue = QuestionQueue()
        #expect(queue.admits(delivered: 1000, limit: nil))
        #expect(queue.next(delivered: 0, limit: nil) == nil)
    }

    @Test func theOthersWaitInTheirOrder() {
        var queue = QuestionQueue()
        #expect(queue.admits(delivered: 0, limit: 1))
        #expect(!queue.admits(delivered: 1, limit: 1))
        for id in ["a", "b", "c"] { queue.append(id) }
        // The free place is for the first question in the queue, not for a new one.
        #expect(!queue.admits(delivered: 0, limit: 1))
        #expect(queue.next(delivered: 1, limit: 1) == nil)
        #expect(queue.next(delivered: 0, limit: 1) == "a")
        #expect(queue.remove("b") && !queue.remove("b"))
        #expect(queue.next(delivered: 0, limit: 2) == "c")
        #expect(queue.next(delivered: 0, limit: 2) == nil)
        #expect(queue.admits(delivered: 1, limit: 2))
    }

    @Test func aLimitThatIsTakenAwayLetsAllOut() {
        var queue = QuestionQueue()
        for id in ["a", "b"] { queue.append(id) }
        #expect(queue.next(delivered: 9, limit: nil) == "a")
        #expect(queue.next(delivered: 9, limit: nil) == "b")
    }
}
