// Uses the `fetch` of the Node client, and prints the results as JSON. Arguments: a site of rig/clients.py.
import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { createFetch, fetch as byAgent } from './fetch.mjs'

const site = process.argv[2]
const [user, password] = readFileSync(process.env.LOGIN_FILE, 'utf8').split('\n')
const digest = data => createHash('sha256').update(new Uint8Array(data)).digest('hex')
const failure = promise => promise.then(() => 'nothing', error => [error.name, error.message, error.cause?.kind ?? error.cause?.name, String(error.stack).includes(password)])
const fetch = createFetch({ answer: ({ previousFailureCount }) => previousFailureCount ? 'cancel' : { user, password } })
const told = {}

const page = await fetch(new URL(`${site}/page#part`))
told.page = [page instanceof Response, page.status, page.ok, page.statusText, page.headers.get('content-type'), page.url === `${site}/page`,
  page.redirected, page.bodyUsed, await page.text(), page.bodyUsed]
told.auth = [page.watchword.auth.user, page.watchword.auth.source]
told.again = (await fetch(`${site}/page`)).watchword.auth.source
const cookies = await fetch(`${site}/cookies`)
told.cookies = [cookies.headers.getSetCookie(), await cookies.text()]
const packed = await fetch(`${site}/packed`)
told.packed = await packed.text()
told.large = digest(await (await fetch(`${site}/large`)).arrayBuffer())
const copied = await fetch(`${site}/redirect`)
const copy = copied.clone()
told.redirected = [copied.redirected, copied.url.endsWith('/page'), copy.redirected, copy.watchword.status, await copied.text() === await copy.text()]
const manual = await fetch(`${site}/redirect`, { redirect: 'manual' })
told.manual = [manual.status, manual.headers.get('location').endsWith('/page'), manual.redirected]
told.error = await failure(fetch(`${site}/redirect`, { redirect: 'error' }))
const echo = async (init, path = '/echo') => (await fetch(site + path, init)).json()
told.json = await echo({ method: 'post', body: JSON.stringify({ a: 1 }), headers: { 'Content-Type': 'application/json', Connection: 'close' } })
told.form = (await echo({ method: 'PUT', body: new URLSearchParams({ a: '1' }) })).type
told.bytes = await echo({ method: 'PUT', body: new Uint8Array(3 << 20) })
const parts = function * () { for (let number = 0; number < 40; number++) yield new Uint8Array(1 << 16).fill(number) }
const uploaded = await fetch(`${site}/echo`, { method: 'PUT', duplex: 'half', body: ReadableStream.from?.(parts()) ?? parts() })
told.streamed = (await uploaded.json()).sha256
told.uploadAuth = uploaded.watchword.auth.user
told.asRequest = await (await fetch(new Request(`${site}/echo`, { method: 'POST', body: 'abc' }))).json()
const head = await fetch(`${site}/page`, { method: 'HEAD' })
told.head = [head.status, head.body]
told.refused = [(await fetch(`${site}/open/refuse`)).status, (await fetch(`${site}/open/refuse`)).ok]

told.unreachable = await failure(fetch('http://127.0.0.1:1/'))
told.short = await failure(fetch(`${site}/short`).then(response => response.arrayBuffer()))
told.relative = await failure(fetch('/page'))
told.secretURL = await failure(fetch(site.replace('//', `//bob:${password}@`)))
told.invalidURL = await failure(fetch(`http://bob:${password}@host:99999/`))
told.scheme = await failure(fetch('file:///etc/passwd'))
told.timeout = await failure(fetch(`${site}/silent`, { signal: AbortSignal.timeout(200) }))
told.aborted = await failure(fetch(`${site}/page`, { signal: AbortSignal.abort() }))
const mine = new AbortController()
const begun = await fetch(`${site}/slow?1`, { signal: mine.signal })
const reader = begun.body.getReader()
told.first = new TextDecoder().decode((await reader.read()).value)
mine.abort(new RangeError('enough'))
told.abortedBody = await failure(reader.read())
const left = await fetch(`${site}/slow?2`)
await left.body.cancel()
told.many = (await Promise.all(Array.from({ length: 200 }, async (_, number) => (await fetch(`${site}/page?${number}`)).text())))
  .filter(text => text === 'staff page\n').length

const header = createFetch({ auth: { useStorage: false } })
const withHeader = await header(`${site}/page`, { headers: { Authorization: `Basic ${Buffer.from(`${user}:${password}`).toString('base64')}` } })
told.authorization = [withHeader.status, withHeader.watchword.auth.source]
told.malformed = await failure(header(`${site}/page`, { headers: { Authorization: `Basic ${password}` } }))
told.agent = (await byAgent(`${site}/open`)).status
const nowhere = createFetch({ path: '/nonexistent/broker.sock' })
told.noBroker = await failure(nowhere(`${site}/page`))
// The process ends by itself, although no connection was closed.
console.log(JSON.stringify(told))
