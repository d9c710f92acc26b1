import COpenSSL
import Testing
import WatchwordCore
import WatchwordProtocol

@testable import Transfers

/// Tokens as their module describes them, and the state of their PINs.
@Suite struct PresentTokenTests {
    private func present(_ label: String, serial: UInt8) -> PresentToken {
        var info = watchword_token_info()
        withUnsafeMutableBytes(of: &info.label) { $0.copyBytes(from: label.utf8) }
        info.serial.0 = serial
        return PresentToken(info)
    }

    private let name = TokenName(["token": Array("work".utf8)])

    private func tokens(_ present: PresentToken..., right: String) -> TokenModule.Tokens {
        var tokens = TokenModule.Tokens()
        tokens.record(present)
        tokens.pins[name] = TokenModule.Pins(tokens: Set(present.map(\.identity)), right: secret(right))
        return tokens
    }

    @Test func anotherTokenOfTheSameNameHasAPINOfItsOwn() {
        var tokens = tokens(present("work", serial: 1), right: "4711")
        tokens.record([present("work", serial: 1), present("home", serial: 2)])
        #expect(tokens.pins[name]?.right == secret("4711"))
        tokens.record([present("work", serial: 2)])
        #expect(tokens.pins.isEmpty)
    }

    @Test func aSecondTokenOfTheSameNameIsNotLoggedIn() {
        var tokens = tokens(present("work", serial: 1), right: "4711")
        tokens.record([present("work", serial: 1), present("work", serial: 2)])
        #expect(tokens.pins.isEmpty && tokens.meant(by: name).count == 2)
    }

    /// Some modules present every key as a separate token.
    @Test func aModuleMayHaveHundredsOfTokens() {
        var module = watchword_token_module()
        module.get_slot_list = { _, slots, count in
            guard let count else { return 7 }
            let available = count.pointee
            count.pointee = 300
            guard let slots else { return 0 }
            // CKR_BUFFER_TOO_SMALL
            guard available >= 300 else { return 0x150 }
            for index in 0..<300 { slots[index] = UInt(index) }
            return 0
        }
        module.get_token_info = { slot, info in
            // CKR_TOKEN_NOT_PRESENT: the token was removed meanwhile.
            guard slot != 5, let info else { return 0xE0 }
            info.pointee = watchword_token_info()
            withUnsafeMutableBytes(of: &info.pointee.serial) { $0.copyBytes(from: "\(slot)".utf8) }
            return 0
        }
        let found = PresentToken.all(of: &module)
        #expect(Set(found.map(\.identity)).count == 299)
        module.get_slot_list = { _, _, _ in 0x05 }
        #expect(PresentToken.all(of: &module).isEmpty)
    }
}
