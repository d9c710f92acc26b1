/**
 * A client for the Watchword broker. It uses only the standard library of Node 18 or newer. Its types are in watchword.d.mts.
 *
 *     const broker = await Watchword.connect({ answer: challenge => ({ user: 'bob', password }) })
 *     console.log((await broker.fetch('https://intranet.example/report')).body.toString())
 */
import { readFileSync, realpathSync, statSync } from 'node:fs'
import { connect } from 'node:net'
import { dirname } from 'node:path'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'

/** The version of Watchword that this client is part of. */
export const { version } = JSON.parse(readFileSync(new URL('package.json', import.meta.url), 'utf8'))

const INLINE_BYTES = 1 << 20

/** An error reported by the broker. `kind` is stable; `retry` is `never`, `later` or `differently`. */
export class BrokerError extends Error {
  constructor({ code, message, data = {} }) {
    super(data.detail ?? message)
    this.name = 'BrokerError'
    this.code = code
    this.kind = data.kind
    this.retry = data.retry ?? 'never'
  }

  /** Whether the same request may succeed later. */
  get retriable() { return this.retry === 'later' }
}

/** Returns an answer with a stored login that the challenge lists in `knownUsers`, without its password. */
export const stored = ({ id }) => ({ type: 'stored', id })

/** Thrown if no process listens on `path`, if another user does or could, and if the broker closes the connection. */
export class ConnectionError extends Error {
  constructor(message, path) {
    super(message)
    this.name = 'ConnectionError'
    this.path = path
  }
}

/** Returns `$WATCHWORD_SOCKET`, or the path below `$XDG_RUNTIME_DIR` or /run/user/UID. */
export function socketPath(environment = process.env) {
  const runtime = environment.XDG_RUNTIME_DIR?.startsWith('/') ? environment.XDG_RUNTIME_DIR : `/run/user/${process.getuid()}`
  return environment.WATCHWORD_SOCKET || `${runtime}/watchword/broker.sock`
}

/** A connection to the broker, for any number of concurrent fetches. */
export class Watchword {
  #path; #socket; #answer; #resolved
  #nextId = 0
  #waiting = new Map()
  #fetches = new Map()
  #questions = new Map()
  #parts = []
  #failure = null
  #background = false

  /**
   * Connects to the broker. `answer` answers challenges; its signal aborts when the challenge is withdrawn. Without `answer`,
   * challenges are sent to an agent. `resolved` receives the outcome of an answer. With `background`, the connection does not keep
   * the process running between calls.
   */
  static async connect({ answer, resolved, path = socketPath(), name = 'node', background = false } = {}) {
    const broker = new Watchword()
    broker.#background = background
    broker.#path = path
    broker.#answer = answer
    broker.#resolved = resolved
    broker.#socket = await open(path, false)
    broker.#socket.on('data', data => broker.#receive(data))
    broker.#socket.on('error', () => {})
    broker.#socket.on('close', () => broker.#fail(new ConnectionError(
      `the broker at ${path} closed the connection; see its log, then connect again`, path)))
    const capabilities = answer ? { challenge: { delivery: 'request' } } : {}
    await broker.call('initialize', { client: { name, version }, protocolVersion: 1, capabilities })
    return broker
  }

  /** Whether the connection can be used for another call. */
  get isOpen() { return this.#failure === null }

  /** Closes the connection, which cancels its running fetches. */
  close() { this.#socket.destroy() }

  /** Returns the response, whatever its status, with its whole body. `options` are `signal`, `data` and those of `fetch/run`. */
  async fetch(url, options = {}) {
    const { completed, body, ...head } = await this.open(url, { maxInlineBodyBytes: INLINE_BYTES, ...options })
    const parts = []
    for await (const part of body) parts.push(part)
    return { ...head, ...await completed, body: Buffer.concat(parts) }
  }

  /**
   * Returns the response as soon as its head has arrived; `body` is an iterator, and ending it early cancels the fetch. `completed` is
   * the result of the fetch; it is in the response at once unless the request body had to be sent over a connection of its own.
   */
  async open(url, { signal, data, size, ...params } = {}) {
    const inline = inlineBody(data)
    if (data !== undefined && !inline) {
      const { maxInlineBodyBytes, ...others } = params
      return this.stream(url, { signal, data, size, ...others })
    }
    const { body, ...result } = await this.call('fetch/run', { maxInlineBodyBytes: 0, ...params, ...inline, url }, { signal })
    return { ...result, body: this.#read(body, signal), completed: Promise.resolve(result) }
  }

  /**
   * Returns a response whose body is a Readable. It ends only if the body is complete; destroying it cancels the fetch. `size` is the
   * size of `data` in bytes, if known.
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
    const forget = () => {
      signal?.removeEventListener('abort', cancel)
      this.#fetches.delete(fetchId)
      this.#keepAlive()
    }
    try {
      if (isAttached) this.#upload(attachToken, data, fetch, cancel)
      const head = await fetch.head
      const socket = await this.#attach(attachToken, 'response')
      const body = Readable.from(whole(socket, fetch, signal, forget), { objectMode: false })
      return { ...head, body, completed: fetch.end }
    } catch (error) {
      await cancel()
      forget()
      throw signal?.aborted ? signal.reason : error
    }
  }

  /** Calls any method of the protocol. */
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
      this.#keepAlive()
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
      let message
      try {
        message = JSON.parse(line.toString())
      } catch {
        this.#fail(new ConnectionError('malformed message from the broker', this.#path))
        return this.#socket.destroy()
      }
      this.#take(message)
    }
    if (data.length) this.#parts.push(data)
  }

  #take({ id, method, params, result, error }) {
    if (method === 'auth/challenge') this.#reply(id, params)
    else if (method === '$/cancelRequest') this.#questions.get(params.id)?.abort()
    else if (method === 'auth/resolved') this.#tell(params)
    else if (method === 'fetch/headers') this.#fetches.get(params.fetchId)?.begin(params)
    else if (method === 'fetch/completed') this.#fetches.get(params.fetchId)?.complete(params)
    else if (method && id !== undefined) this.#send({ id, error: { code: -32601, message: 'method not supported by this client' } })
    else if (!method && this.#waiting.has(id)) this.#settle(id, result, error)
  }

  #tell(end) {
    try {
      this.#resolved?.(end)
    } catch (error) {
      process.emitWarning(`the resolved handler failed: ${error.message}`)
    }
  }

  #settle(id, result, error) {
    const { resolve, reject, signal } = this.#waiting.get(id)
    this.#waiting.delete(id)
    if (result?.attachToken) {
      // The notifications of this fetch can be in the same data, and are handled before the caller continues.
      if (signal?.aborted) this.#send({ id: ++this.#nextId, method: 'fetch/cancel', params: { fetchId: result.fetchId } })
      else this.#fetches.set(result.fetchId, new Steps())
    }
    this.#keepAlive()
    if (error) reject(new BrokerError(error))
    else resolve(result)
  }

  #keepAlive() {
    if (!this.#background) return
    if (this.#waiting.size + this.#fetches.size > 0) this.#socket.ref()
    else this.#socket.unref()
  }

  async #reply(id, challenge) {
    const withdrawn = new AbortController()
    this.#questions.set(id, withdrawn)
    let result = { action: 'cancel' }
    try {
      result = this.#answer ? action(await this.#answer(challenge, withdrawn.signal)) : { action: 'default' }
    } catch (error) {
      if (!withdrawn.signal.aborted) process.emitWarning(`the answer function failed; the fetch is cancelled: ${error.message}`)
    }
    this.#questions.delete(id)
    if (!withdrawn.signal.aborted) this.#send({ id, result })
  }

  #fail(error) {
    if (this.#failure) return
    this.#failure = error
    for (const { reject } of this.#waiting.values()) reject(error)
    this.#waiting.clear()
    for (const fetch of this.#fetches.values()) fetch.fail(error)
    for (const question of this.#questions.values()) question.abort()
  }

  async * #read(body, signal) {
    if (body.type !== 'handle') return yield bytes(body)
    const { fetchId } = body
    let part
    try {
      while (!part?.eof) {
        part = await this.call('fetch/read', { fetchId, maxBytes: INLINE_BYTES }, { signal })
        yield bytes(part.data)
      }
    } finally {
      if (!part?.eof) this.call('fetch/cancel', { fetchId }).catch(() => {})
    }
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
      // Until the fetch ends, only the sending half is closed: a full close would look like a crash of this program.
      await pipeline(source, socket)
      await fetch.end
    } catch {
      // The broker reports problems of the body at the end of the fetch.
      if (mistake) { fetch.fail(mistake); cancel() }
    } finally {
      socket?.destroy()
    }
  }
}

/** The state of a fetch begun with `fetch/start`. */
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

/** Yields the bytes of an attached body. The end of the stream does not prove that the body is complete. */
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
 * Throws if another user could receive the passwords sent to the socket. Node has no SO_PEERCRED, so this function checks before
 * connecting that this user owns the socket file, and that only this user and root can replace it or a directory above it.
 */
function checkSocket(path) {
  const refuse = reason => {
    throw new ConnectionError(`refusing to use the socket ${path}: ${reason}; the socket must be in a directory that only you can write to, ` +
      'such as $XDG_RUNTIME_DIR/watchword', path)
  }
  const own = process.geteuid()
  let directory, socket
  try {
    directory = realpathSync(dirname(path))
    socket = statSync(path)
  } catch { /* a missing socket is reported by connect */ }
  for (let isAbove = false; directory !== undefined; isAbove = true) {
    const { uid, mode } = statSync(directory)
    if (uid !== 0 && uid !== own) refuse(`the directory ${directory} belongs to user ${uid}`)
    // In a sticky directory, such as /tmp, others cannot replace existing files.
    const isWritable = (mode & 0o022) !== 0 && !(isAbove && (mode & 0o1000) !== 0)
    if (isWritable) refuse(`the directory ${directory} can be written by other users (mode 0${(mode & 0o7777).toString(8)})`)
    directory = directory === '/' ? undefined : dirname(directory)  // guard: client-ancestors-node
  }
  if (socket && socket.uid !== own) refuse(`it belongs to user ${socket.uid}`)
}

function open(path, allowHalfOpen = true) {
  checkSocket(path)
  return new Promise((resolve, reject) => {
    const socket = connect({ path, allowHalfOpen })
    socket.once('connect', () => { socket.removeAllListeners('error'); resolve(socket) })
    socket.once('error', error => reject(new ConnectionError(
      `no broker listens at ${path} (${error.code}); start one with \`systemctl --user start watchword.socket\` or \`watchwordd\``, path)))
  })
}

/** Reads up to the first line feed; the rest stays in the socket. */
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
    const lost = () => reject(new ConnectionError(`the broker at ${path} closed the connection of a body; retry the fetch`, path))
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
  throw new TypeError('invalid answer; return a login, a credential, or continue, cancel, default, reject')
}

function inlineBody(data) {
  if (typeof data === 'string') data = Buffer.from(data)
  if (!(data instanceof Uint8Array) || data.length > INLINE_BYTES) return undefined
  return { body: { type: 'base64', value: Buffer.from(data).toString('base64') } }
}

const bytes = ({ type, value }) => Buffer.from(value, type === 'base64' ? 'base64' : 'utf8')
