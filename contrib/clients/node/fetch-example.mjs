import { readFileSync } from 'node:fs'
import { createFetch } from './fetch.mjs'

const [user, password] = readFileSync(process.env.LOGIN_FILE, 'utf8').split('\n')
const fetch = createFetch({ answer: ({ previousFailureCount }) => previousFailureCount ? 'cancel' : { user, password } })
const response = await fetch(process.argv[2], { headers: { Accept: 'text/plain' }, signal: AbortSignal.timeout(20_000) })
console.log(response.status, await response.text())
console.log(response.watchword.auth?.user)
