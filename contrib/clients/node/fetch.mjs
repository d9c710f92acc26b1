/**
 * The `fetch` of the web (https://fetch.spec.whatwg.org/) through the Watchword broker.
 *
 *     const fetch = createFetch({ answer: challenge => ({ user: 'bob', password }) })
 *     const response = await fetch('https://intranet.example/report')
 *     console.log(await response.text(), response.watchword.auth?.source)
 */
import { Gate } from './gate.mjs'
import { Watchword } from './watchword.mjs'

/** The fields that the broker sets itself; the standard forbids them, too. */
const FORBIDDEN = /^(connection|content-length|cookie2|expect|host|keep-alive|te|trailer|transfer-encoding|upgrade|proxy-.*)$/
const REDIRECTS = [301, 302, 303, 307, 308]
const WITHOUT_BODY = [204, 205, 304]
/** The broker limits the unread bodies of a connection to 64. */
const AT_ONCE = 32
const READ_AHEAD = 1 << 16
/** No limit for the whole transfer, and 300 s without data, as in Node's own `fetch`. */
const PATIENCE = { timeoutMs: 86_400_000, lowSpeed: { bytesPerSecond: 1, seconds: 300 } }

/** A Response that also has, as `watchword`, the result of `fetch/run` without its body. */
export class WatchwordResponse extends Response {
  #seen

  constructor(body, init, seen) {
    super(body, init)
    this.#seen = seen
  }

  /** For a request body sent over a connection of its own, `auth` is present once the response body has been read. */
  get watchword() { return this.#seen.current }
  get redirected() { return this.#seen.redirected }
  get url() { return withoutFragment(this.#seen.current.url) }

  clone() {
    const copy = super.clone()
    return new WatchwordResponse(copy.body, copy, this.#seen)
  }
}

/**
 * Returns a `fetch` that connects to the broker on first use. `answer`, `resolved`, `path` and `name` are those of
 * `Watchword.connect`; the other options are parameters of each `fetch/run`.
 */
export function createFetch({ answer, resolved, path, name, ...params } = {}) {
  const gate = new Gate(AT_ONCE)
  let connecting
  async function connected() {
    const current = connecting
    const broker = await current?.catch(() => undefined)
    if (broker?.isOpen) return broker
    if (connecting === current) connecting = Watchword.connect({ answer, resolved, path, name, background: true })
    return connecting
  }

  return async function fetch(input, init = {}) {
    const request = requestOf(input, init ?? {})
    const signal = init?.signal === undefined ? request.signal : init.signal ?? undefined
    signal?.throwIfAborted()
    const reading = new AbortController()
    // A Request does not forward the signal once it is garbage, so the response listens to the caller's own.
    const abort = () => reading.abort(signal.reason)
    signal?.addEventListener('abort', abort, { once: true })
    const forget = () => signal?.removeEventListener('abort', abort)
    try {
      const options = { ...PATIENCE, decompress: !request.headers.has('accept-encoding'), ...params, ...await optionsOf(request, init ?? {}) }
      const opened = await gate.pass(reading.signal, async () =>
        (await connected()).open(withoutFragment(request.url), { ...options, signal: reading.signal }))
      return await responseOf(request, opened, reading, forget)
    } catch (error) {
      forget()
      throw signal?.aborted ? signal.reason : failed('fetch failed', error)
    }
  }
}

/** The `fetch` of a program that leaves its challenges to the desktop agent. */
export const fetch = createFetch()

/** Returns the request as the standard defines it. Errors of `Request` quote the URL, which can contain a password. */
function requestOf(input, init) {
  if (!(input instanceof Request)) {
    let url
    try { url = new URL(String(input)) } catch { throw new TypeError('invalid URL: fetch needs an absolute http or https URL') }
    if (url.username || url.password) throw new TypeError('the URL contains a user or a password; let the broker ask, or set Authorization')
    if (!/^https?:$/.test(url.protocol)) throw new TypeError(`the scheme ${url.protocol} is not supported; fetch needs http or https`)
  }
  return new Request(input, init)
}

async function optionsOf(request, init) {
  const fields = [...request.headers].filter(([name]) => !FORBIDDEN.test(name) && name !== 'authorization')
  const authorization = request.headers.get('authorization')
  return {
    method: request.method,
    headers: fields,
    ...authorization !== null && { credential: credentialOf(authorization) },
    ...request.redirect !== 'follow' && { maxRedirects: 0 },
    ...request.body && { data: isStream(init.body) ? init.body : new Uint8Array(await request.arrayBuffer()) },
  }
}

const isStream = body => typeof body === 'object' && body !== null && (body instanceof ReadableStream || Symbol.asyncIterator in body)

/** The broker sends the credential only to the server of the request, and only after a challenge. */
function credentialOf(authorization) {
  const [, scheme, value] = /^(\S*)\s*(.*)$/.exec(authorization)
  if (/^bearer$/i.test(scheme)) return { type: 'token', token: value }
  if (!/^basic$/i.test(scheme)) return { type: 'header', scheme, value }
  const login = Buffer.from(value, 'base64').toString()
  const colon = login.indexOf(':')
  if (colon < 0) throw new TypeError('malformed Authorization header: Basic needs base64 of user:password')
  return { type: 'password', user: login.slice(0, colon), password: login.slice(colon + 1) }
}

async function responseOf(request, { body, completed, ...head }, reading, forget) {
  const stream = byteStream(body, reading, forget)
  if (request.redirect === 'error' && REDIRECTS.includes(head.status)) {
    await stream.cancel()
    throw new Error(`the server redirects with status ${head.status}, and the option redirect is "error"`)
  }
  const seen = { current: head, redirected: withoutFragment(head.url) !== withoutFragment(request.url) }
  completed.then(result => { seen.current = result }, () => {})
  const hasBody = request.method !== 'HEAD' && !WITHOUT_BODY.includes(head.status)
  if (!hasBody) await stream.cancel()
  const headers = new Headers(head.headers.map(([name, value]) => [name, byteString(value)]))
  const statusText = /^[\t\x20-\x7e\x80-\xff]*$/.test(head.reason ?? '') ? head.reason : ''
  return new WatchwordResponse(hasBody ? stream : null, { status: head.status, statusText, headers }, seen)
}

/** Returns a byte stream of the parts. It fails unless the body is complete; cancelling it cancels the fetch. */
function byteStream(parts, reading, forget) {
  const iterator = parts[Symbol.asyncIterator]()
  const next = async () => {
    const { done, value } = await iterator.next()
    return done || value.length ? { done, value } : next()
  }
  return new ReadableStream({
    type: 'bytes',
    async pull(controller) {
      try {
        const { done, value } = await next()
        // The stream takes over the memory of the part, so it gets a copy.
        if (!done) return controller.enqueue(new Uint8Array(value))
        forget()
        controller.close()
        controller.byobRequest?.respond(0)
      } catch (error) {
        forget()
        controller.error(reading.signal.aborted ? reading.signal.reason : failed('terminated', error))
      }
    },
    async cancel() {
      forget()
      reading.abort()
      // The iterator cancels the fetch as soon as it runs.
      await iterator.next().catch(() => {})
      await iterator.return()
    },
  }, { highWaterMark: READ_AHEAD })
}

const failed = (message, cause) => cause instanceof TypeError ? cause : new TypeError(message, { cause })
const withoutFragment = url => url.replace(/#.*/s, '')
/** Returns the bytes of a header value, one in each character, as the standard wants them. */
const byteString = value => /[^\x00-\xff]/.test(value) ? Buffer.from(value).toString('latin1') : value
