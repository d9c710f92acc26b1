import Testing

@testable import watchword

@Suite struct ProgressTests {
    /// Returns the progress of a transfer of 1 MiB per second after `mebibytes` seconds.
    private func progress(_ mebibytes: Int, of expected: Int?, name: String = "report.csv") -> ShownProgress {
        var progress = ShownProgress(name: name)
        progress.restart(.receiving, expected: expected.map { $0 << 20 })
        for second in 0...mebibytes { progress.record(second << 20, at: Double(second)) }
        return progress
    }

    @Test func saysSizeSpeedAndTimeLeft() {
        let text = ProgressLine.text(progress(25, of: 100), at: 25, width: 100)
        #expect(
            text
                == "report.csv                [#######                      ]  25%  25.0 MiB of 100 MiB  1.0 MiB/s  1:15"
        )
    }

    @Test func withoutALengthThereIsNoBar() {
        #expect(
            ProgressLine.text(progress(3, of: nil), at: 3, width: 80) == "report.csv                3.0 MiB  1.0 MiB/s")
    }

    @Test(arguments: 0...130)
    func fitsEveryWidth(width: Int) {
        for name in ["report.csv", "報告書報告書報告書報告書.csv", ""] {
            let text = ProgressLine.text(progress(25, of: 100, name: name), at: 25, width: width)
            let places = text.unicodeScalars.reduce(0) { $0 + ($1.value > 0x2E80 ? 2 : 1) }
            #expect(places <= width)
            #expect(ProgressLine.text(progress(2, of: 4), at: 25, width: width, isBarOnly: true).count <= width)
        }
    }

    @Test func showsTheReasonOfTheWait() {
        var progress = ShownProgress(name: "a")
        for (state, words) in [
            (.starting, "waiting for the server"), (.waitingForAnswer, "waiting for your answer"),
            (.waitingForRetry(seconds: 4), "retry in 4 s"), (.ended(isComplete: false), "failed"),
        ] as [(ShownProgress.State, String)] {
            progress.state = state
            #expect(ProgressLine.text(progress, at: 0, width: 80).hasSuffix(words))
        }
    }

    @Test func theSpeedIsThatOfTheLastSeconds() throws {
        var progress = progress(100, of: 1000)
        #expect(try #require(progress.speed(at: 100)) == Double(1 << 20))
        progress.record(100 << 20, at: 110)
        #expect(try #require(progress.speed(at: 110)) == 0 && progress.secondsLeft(at: 110) == nil)
        progress.restart(.receiving, bytes: 5, expected: 10)
        #expect(progress.speed(at: 110) == nil && progress.bytes == 5)
    }

    @Test func theBarAlone() {
        #expect(
            ProgressLine.text(progress(25, of: 100), at: 25, width: 25, isBarOnly: true) == "[####              ]  25%")
        #expect(
            ProgressLine.text(progress(25, of: 25), at: 25, width: 25, isBarOnly: true) == "[##################] 100%")
    }

    @Test func timesAndSizes() {
        #expect(
            [0, 59, 60, 3599, 3600, 3723].map(ProgressLine.time) == [
                "0:00", "0:59", "1:00", "59:59", "1:00:00", "1:02:03",
            ])
        #expect(
            [0, 999, 1000, 1024, 102_350, 1 << 20, 1 << 30, 1 << 50].map(ByteCount.text) == [
                "0 B", "999 B", "1.0 KiB", "1.0 KiB", "100 KiB", "1.0 MiB", "1.0 GiB", "1024 TiB",
            ])
        #expect(
            ["0", "12", "1k", "1.5K", "2M", "1g", "1T"].map(ByteCount.parse) == [
                0, 12, 1024, 1536, 2 << 20, 1 << 30, 1 << 40,
            ])
        #expect(
            ["", "k", "-1", "1.5", "1x", "1kk", "nan", "1e3", "99999999P"].allSatisfy { ByteCount.parse($0) == nil })
    }
}
