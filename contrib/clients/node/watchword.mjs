/**
 * A client for the Watchword broker, with the standard library of Node 18 or newer.
 *
 *     const broker = await Watchword.connect({ answer: challenge => ({ user: 'bob', password }) })
 *     console.log((await broker.fetch('https://intranet.example/report')).body.toString())
 *
 * @typedef {{status: number, url: string, httpVersion: string, headers: [string, string][], bodyBytes: number | null,
 *   auth?: {authenticationMethod: string, source: string, user: string | null} | null}} Head
 * @typedef {{user: string, password: string, domain?: string, persistence?: string}} Login
 * @typedef {'continue' | 'cancel' | 'default' | 'reject'} Decision
 * @typedef {{id: string, user: string, domain?: string, source: string}} KnownUser  a stored login, for `stored`
 * @typedef {{challengeId: string, action: string, by: string, outcome: 'accepted' | 'refused' | 'abandoned' | 'superseded',
 *   user?: string}} Resolved
 * @typedef {Login | {type: string} | {action: string} | Decision | null | undefined} Answer  nothing means 'continue'
 * @typedef {{challengeId: string, url: string, protectionSpace: Record<string, any>, previousFailureCount: number,
 *   accepts: string[], persistenceAllowed: string[], knownUsers?: KnownUser[]} & Record<string, any>} Challenge  as in `auth/challenge`
 * @typedef {string | Uint8Array | AsyncIterable<Uint8Array> | Iterable<Uint8Array>} Data  a Readable among them
 */
import { realpathSync, statSync } from 'node:fs'
import { connect } from 'node:net'
import { dirname } from 'node:path'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'

const INLINE_BYTES = 1 << 20

/** What the broker says went wrong. `kind` is stable; `retry` is `never`, `later` or `differently`. */
export class BrokerError extends Error {
  constructor({ code, message, data = {} }) {
    super(data.detail ?? message)
    this.name = 'BrokerError'
    this.code = code
    this.kind = data.kind
    this.retry = data.retry ?? 'never'
  }

  /** Whether the very same may work another time. */
  get retriable() { return this.retry === 'later' }
}

/** Answers with one of the stored logins that a challenge lists in `knownUsers`, so that nobody types its password. */
export const stored = ({ id }) => ({ type: 'stored', id })

/** Nobody listens at `path`, another user does or could, or the broker has gone away. */
export class ConnectionError extends Error {
  constructor(message, path) {
    super(message)
    this.name = 'ConnectionError'
    this.path = path
  }
}

/** `$WATCHWORD_SOCKET`, else below `$XDG_RUNTIME_DIR`, else below /run/user/UID. */
export function socketPath(environment = process.env) {
  const runtime = environment.XDG_RUNTIME_DIR?.startsWith('/') ? environment.XDG_RUNTIME_DIR : `/run/user/${process.getuid()}`
  return environment.WATCHWORD_SOCKET || `${runtime}/watchword/broker.sock`
}

/** One connection, for any number of fetches at once. */
export class Watchword {
  #path; #socket; #answer; #resolved
  #nextId = 0
  #waiting = new Map()
  #fetches = new Map()
  #questions = new Map()
  #parts = []
  #failure = null

  /**
   * @param {{answer?: (challenge: Challenge, signal: AbortSignal) => Answer | Promise<Answer>, resolved?: (end: Resolved) => void,
   *   path?: string, name?: string}} [options]
   *   `answer` is asked when a server asks; its signal says that the question was withdrawn. `resolved` is told how an answer ended.
   * @returns {Promise<Watchword>}
   */
  static async connect({ answer, resolved, path = socketPath(), name = 'node' } = {}) {
    const broker = new Watchword()
    broker.#path = path
    broker.#answer = answer
    broker.#resolved = resolved
    broker.#socket = await open(path, false)
    broker.#socket.on('data', data => broker.#receive(data))
    broker.#socket.on('error', () => {})
    broker.#socket.on('close', () => broker.#fail(new ConnectionError(
      `the broker at ${path} has closed the connection: look at its log, connect and try again`, path)))
    const capabilities = answer ? { challenge: { delivery: 'request' } } : {}
    await broker.call('initialize', { client: { name }, protocolVersion: 1, capabilities })
    return broker
  }

  /** Whatever still runs on this connection is cancelled. */
  close() { this.#socket.destroy() }

  /**
   * The response, whatever its status, with its whole body.
   * @param {string} url
   * @param {{signal?: AbortSignal, data?: Data} & Record<string, any>} [options]  besides these, the parameters of `fetch/run`
   * @returns {Promise<Head & {body: Buffer}>}
   */
  async fetch(url, { signal, data, ...params } = {}) {
    const inline = inlineBody(data)
    if (data !== undefined && !inline) {
      const response = await this.stream(url, { signal, data, ...params })
      return { ...response, body: Buffer.concat(await response.body.toArray()) }
    }
    const result = await this.call('fetch/run', { ...params, ...inline, url }, { signal })
    return { ...result, body: result.body.type === 'handle' ? await this.#readAll(result.body.fetchId, signal) : bytes(result.body) }
  }

  /**
   * A response whose body is a Readable: at its end it was whole; destroying it ends the fetch.
   * @param {string} url
   * @param {{signal?: AbortSignal, data?: Data, size?: number} & Record<string, any>} [options]  `size` is that of `data`, if known
   * @returns {Promise<Head & {body: Readable}>}
   */
  async stream(url, { signal, data, size, ...params } = {}) {
    const inline = inlineBody(data)
    const isAttached = data !== undefined && !inline
    const known = data instanceof Uint8Array ? data.length : size
    const body = isAttached ? { body: known === undefined ? { type: 'attach' } : { type: 'attach', sizeBytes: known } } : inline
    const { fetchId, attachToken } = await this.call('fetch/start', { ...params, ...body, url }, { signal })
    const fetch = this.#fetches.get(fetchId)
    const cancel = () => this.call('fetch/cancel', { fetchId }).catch(() => {})
    signal?.addEventListener('abort', cancel, { once: true })
    const forget = () => { signal?.removeEventListener('abort', cancel); this.#fetches.delete(fetchId) }
    try {
      if (isAttached) this.#upload(attachToken, data, fetch, cancel)
      const head = await fetch.head
      const socket = await this.#attach(attachToken, 'response')
      return { ...head, body: Readable.from(whole(socket, fetch, signal, forget), { objectMode: false }) }
    } catch (error) {
      await cancel()
      forget()
      throw signal?.aborted ? signal.reason : error
    }
  }

  /** Any method of the protocol. @returns {Promise<any>} */
  call(method, params = {}, { signal } = {}) {
    if (this.#failure) return Promise.reject(this.#failure)
    if (signal?.aborted) return Promise.reject(signal.reason)
    const id = ++this.#nextId
    return new Promise((resolve, reject) => {
      const abort = () => {
        this.#send({ method: '$/cancelRequest', params: { id } })
        reject(signal.reason)
      }
      signal?.addEventListener('abort', abort, { once: true })
      const settled = then => value => { signal?.removeEventListener('abort', abort); then(value) }
      this.#waiting.set(id, { resolve: settled(resolve), reject: settled(reject), signal })
      this.#send({ id, method, params })
    })
  }

  #send(message) {
    if (!this.#failure) this.#socket.write(JSON.stringify({ jsonrpc: '2.0', ...message }) + '\n')
  }

  #receive(data) {
    for (let end; (end = data.indexOf(10)) >= 0; data = data.subarray(end + 1)) {
      this.#parts.push(data.subarray(0, end))
      const line = Buffer.concat(this.#parts)
      this.#parts = []
      this.#take(JSON.parse(line.toString()))
    }
    if (data.length) this.#parts.push(data)
  }

  #take({ id, method, params, result, error }) {
    if (method === 'auth/challenge') this.#reply(id, params)
    else if (method === '$/cancelRequest') this.#questions.get(params.id)?.abort()
    else if (method === 'auth/resolved') this.#tell(params)
    else if (method === 'fetch/headers') this.#fetches.get(params.fetchId)?.begin(params)
    else if (method === 'fetch/completed') this.#fetches.get(params.fetchId)?.complete(params)
    else if (method && id !== undefined) this.#send({ id, error: { code: -32601, message: 'this client does not answer that' } })
    else if (!method && this.#waiting.has(id)) this.#settle(id, result, error)
  }

  #tell(end) {
    try {
      this.#resolved?.(end)
    } catch (error) {
      process.emitWarning(`the handler of an answer's end failed: ${error.message}`)
    }
  }

  #settle(id, result, error) {
    const { resolve, reject, signal } = this.#waiting.get(id)
    this.#waiting.delete(id)
    if (result?.attachToken) {
      // What is told of it may be in the same bytes as this, and is taken before the caller runs again.
      if (signal?.aborted) this.#send({ id: ++this.#nextId, method: 'fetch/cancel', params: { fetchId: result.fetchId } })
      else this.#fetches.set(result.fetchId, new Steps())
    }
    if (error) reject(new BrokerError(error))
    else resolve(result)
  }

  async #reply(id, challenge) {
    const withdrawn = new AbortController()
    this.#questions.set(id, withdrawn)
    let result = { action: 'cancel' }
    try {
      result = this.#answer ? action(await this.#answer(challenge, withdrawn.signal)) : { action: 'default' }
    } catch (error) {
      if (!withdrawn.signal.aborted) process.emitWarning(`the answer to a challenge failed, and the fetch is cancelled: ${error.message}`)
    }
    this.#questions.delete(id)
    if (!withdrawn.signal.aborted) this.#send({ id, result })
  }

  #fail(error) {
    this.#failure = error
    for (const { reject } of this.#waiting.values()) reject(error)
    this.#waiting.clear()
    for (const fetch of this.#fetches.values()) fetch.fail(error)
    for (const question of this.#questions.values()) question.abort()
  }

  async #readAll(fetchId, signal) {
    const parts = []
    for (let part; !part?.eof;) {
      part = await this.call('fetch/read', { fetchId, maxBytes: INLINE_BYTES }, { signal })
      parts.push(bytes(part.data))
    }
    return Buffer.concat(parts)
  }

  async #attach(token, side) {
    const socket = await open(this.#path)
    socket.write(JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'fetch/attach', params: { token, side } }) + '\n')
    const { error } = JSON.parse(await firstLine(socket, this.#path))
    if (!error) return socket
    socket.destroy()
    throw new BrokerError(error)
  }

  async #upload(token, data, fetch, cancel) {
    let socket
    const source = Readable.from(data instanceof Uint8Array ? [data] : data, { objectMode: false })
    let mistake
    source.once('error', error => { mistake = error })
    try {
      socket = await this.#attach(token, 'request')
      // The socket's own end stays open: one that is closed at once may be that of a program that has died.
      await pipeline(source, socket)
      await fetch.end
    } catch {
      // What the broker thinks of the body comes with the end of the fetch.
      if (mistake) { fetch.fail(mistake); cancel() }
    } finally {
      socket?.destroy()
    }
  }
}

/** What is known of a fetch that was begun by `fetch/start`. */
class Steps {
  constructor() {
    this.head = new Promise((resolve, reject) => { this.begin = resolve; this.failHead = reject })
    this.end = new Promise((resolve, reject) => { this.resolve = resolve; this.failEnd = reject })
    this.head.catch(() => {})
    this.end.catch(() => {})
  }

  complete(result) {
    if (result.error) return this.fail(new BrokerError(result.error))
    this.begin(result)
    this.resolve(result)
  }

  fail(error) {
    this.failHead(error)
    this.failEnd(error)
  }
}

/** The bytes of an attached body; the end of the stream alone does not say that it is whole. */
async function * whole(socket, fetch, signal, forget) {
  try {
    yield * socket
    await fetch.end
  } catch (error) {
    throw signal?.aborted ? signal.reason : error
  } finally {
    forget()
    socket.destroy()
  }
}

/**
 * A socket that another user has put there would receive passwords. Node has no SO_PEERCRED: what is checked before connecting is
 * that the socket's file is this user's, and that nobody but this user and root can replace it or a directory above it.
 */
function checkSocket(path) {
  const refuse = reason => {
    throw new ConnectionError(`refusing to use the socket ${path}: ${reason}; it has to be in a directory that only you can write to, ` +
      'such as $XDG_RUNTIME_DIR/watchword', path)
  }
  const own = process.geteuid()
  let directory, socket
  try {
    directory = realpathSync(dirname(path))
    socket = statSync(path)
  } catch { /* that it does not exist is said by connect */ }
  for (let isAbove = false; directory !== undefined; isAbove = true) {
    const { uid, mode } = statSync(directory)
    if (uid !== 0 && uid !== own) refuse(`the directory ${directory} belongs to user ${uid}`)
    // In a sticky directory, such as /tmp, others cannot replace what is there.
    const isWritable = (mode & 0o022) !== 0 && !(isAbove && (mode & 0o1000) !== 0)
    if (isWritable) refuse(`the directory ${directory} can be written by other users (mode 0${(mode & 0o7777).toString(8)})`)
    directory = directory === '/' ? undefined : dirname(directory)
  }
  if (socket && socket.uid !== own) refuse(`it belongs to user ${socket.uid}`)
}

function open(path, allowHalfOpen = true) {
  checkSocket(path)
  return new Promise((resolve, reject) => {
    const socket = connect({ path, allowHalfOpen })
    socket.once('connect', () => { socket.removeAllListeners('error'); resolve(socket) })
    socket.once('error', error => reject(new ConnectionError(
      `no broker listens at ${path} (${error.code}): start one with \`systemctl --user start watchword.socket\` or \`watchwordd\``, path)))
  })
}

/** Up to the first line feed; what follows stays in the socket. */
function firstLine(socket, path) {
  return new Promise((resolve, reject) => {
    let line = Buffer.alloc(0)
    const take = () => {
      for (let data; (data = socket.read());) {
        line = Buffer.concat([line, data])
        const end = line.indexOf(10)
        if (end < 0) continue
        socket.removeListener('readable', take)
        socket.removeListener('close', lost)
        if (end + 1 < line.length) socket.unshift(line.subarray(end + 1))
        return resolve(line.subarray(0, end).toString())
      }
    }
    const lost = () => reject(new ConnectionError(`the broker at ${path} has closed the connection of a body: try again`, path))
    socket.on('readable', take)
    socket.once('end', lost)
    socket.once('close', lost)
    socket.on('error', () => {})
  })
}

function action(answer) {
  if (answer === null || answer === undefined) return { action: 'continue' }
  if (['continue', 'cancel', 'default', 'reject'].includes(answer)) return { action: answer }
  if (typeof answer === 'object' && 'action' in answer) return answer
  if (typeof answer === 'object' && 'type' in answer) return { action: 'credential', credential: answer }
  if (typeof answer === 'object' && 'user' in answer) return { action: 'credential', credential: { type: 'password', ...answer } }
  throw new TypeError('return a log-in, a credential, or continue, cancel, default, reject')
}

function inlineBody(data) {
  if (typeof data === 'string') data = Buffer.from(data)
  if (!(data instanceof Uint8Array) || data.length > INLINE_BYTES) return undefined
  return { body: { type: 'base64', value: Buffer.from(data).toString('base64') } }
}

const bytes = ({ type, value }) => Buffer.from(value, type === 'base64' ? 'base64' : 'utf8')
