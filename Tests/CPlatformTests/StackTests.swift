import CPlatform
import TestSystemCalls
import Testing

@Suite struct StackTests {
    /// Functions that have returned leave their data on the stack.
    @Test func aStackIsCleared() {
        let place = watchword_test_leave_on_stack(0xA5)
        let before = watchword_test_count_on_stack(place, 0xA5)
        watchword_clear_stack()
        let after = watchword_test_count_on_stack(place, 0xA5)
        #expect(before == 1024 && after == 0)
    }
}
