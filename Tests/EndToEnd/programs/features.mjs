// Uses features of the Node client beyond a single fetch, and prints the results as JSON. Arguments: a site of rig/clients.py.
import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { Readable } from 'node:stream'
import { Watchword } from './watchword.mjs'

const site = process.argv[2]
const [user, password] = readFileSync(process.env.LOGIN_FILE, 'utf8').split('\n')
const digest = data => createHash('sha256').update(data).digest('hex')
const kind = promise => promise.then(() => 'nothing', error => error.kind ?? error.name)
const counts = []
const broker = await Watchword.connect({ answer: challenge => {
  counts.push(challenge.previousFailureCount)
  if (challenge.url.endsWith('/mistake')) throw new Error('mine')
  if (challenge.url.endsWith('/typo')) return { type: 'password', user, pasword: 'x' }
  return { user, password: challenge.previousFailureCount ? password : 'wrong' }
} })
const told = { mistake: await kind(broker.fetch(`${site}/mistake`)), typo: await kind(broker.fetch(`${site}/typo`)) }
counts.length = 0
told.wrongThenRight = (await broker.fetch(`${site}/page`)).body.toString()
told.counts = counts

const large = await broker.stream(`${site}/large`)
told.streamed = digest(Buffer.concat(await large.body.toArray()))
const parts = function * () { for (let number = 0; number < 40; number++) yield Buffer.alloc(1 << 16, number) }
const sent = await broker.fetch(`${site}/echo`, { method: 'PUT', data: Readable.from(parts()) })
told.uploaded = JSON.parse(sent.body).sha256
told.uploadedBytes = JSON.parse((await broker.fetch(`${site}/echo`, { method: 'PUT', data: Buffer.concat([...parts()]) })).body).sha256
const torn = async function * () { yield Buffer.from('x'); throw new RangeError('the tape is torn') }
told.torn = await kind(broker.fetch(`${site}/open/echo`, { method: 'PUT', data: torn() }))
told.atOnce = (await Promise.all(Array.from({ length: 20 }, (_, number) => broker.fetch(`${site}/page?${number}`)))).map(page => page.status)
told.short = await kind(broker.stream(`${site}/short`).then(response => response.body.toArray()))
told.refused = await kind(broker.fetch('http://127.0.0.1:1/'))
const slow = await broker.stream(`${site}/slow`)
for await (const part of slow.body) { told.first = part.toString(); break }
told.aborted = await kind(broker.fetch(`${site}/silent`, { signal: AbortSignal.timeout(200) }))
told.abortedStream = await kind(broker.stream(`${site}/silent`, { signal: AbortSignal.timeout(200) }))
told.after = (await broker.fetch(`${site}/page`)).status
broker.close()
told.closed = await kind(broker.fetch(`${site}/page`))
console.log(JSON.stringify(told))
