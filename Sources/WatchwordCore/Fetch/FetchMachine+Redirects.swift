internal import WatchwordProtocol

/// Where a response leads to, and whether the client agrees.
extension FetchMachine {
    /// Follows the response, or asks the client first. `nil` where it leads nowhere.
    mutating func redirect(
        _ response: TransferResponse, _ context: inout FetchContext
    ) -> FetchStep? {
        guard plan.maxRedirects > 0 else { return nil }
        do throws(FetchFailure) {
            let next = try RedirectPolicy.next(
                after: hop, response: response, hasAuthenticated: hasAuthenticated, plan.redirects)
            guard let next else { return nil }
            releaseAll(&context)
            redirects += 1
            guard redirects <= plan.maxRedirects else { return tooManyRedirects(&context) }
            try context.environment.hosts.check(next.url.origin)
            guard plan.subscription?.approvesRedirects == true else {
                return follow(next, after: response, &context)
            }
            let redirect = Redirect(
                status: response.status, from: hop.url.text, to: next.url.text, method: next.method)
            return consult(.approveRedirect(redirect), then: .redirect(response, next))
        } catch {
            return fail(error, &context)
        }
    }

    /// The client agrees, or was not to be asked. Everything that holds for a redirect holds for this one too.
    mutating func follow(
        _ next: HopRequest, after response: TransferResponse, _ context: inout FetchContext
    ) -> FetchStep {
        let event = FetchEvent.redirected(status: response.status, from: hop.url.text, to: next.url.text)
        let previous = hop.url.origin
        hop = next
        return enterHop(from: previous, &context, events: [event])
    }

    private mutating func tooManyRedirects(_ context: inout FetchContext) -> FetchStep {
        let text =
            "More than \(plan.maxRedirects) redirects, the last at \(DisplayURL.text(hop.url.text)). Allow more with maxRedirects."
        return fail(FetchFailure(.tooManyRedirects, text), &context)
    }
}
