// Answers with a stored login, for each user in turn, and prints the listed users, the outcome of the answer, and the body.
import { stored, Watchword } from './watchword.mjs'

const [url, wanted] = process.argv[2].split(' ')
const broker = await Watchword.connect({
  answer: ({ knownUsers = [] }) => {
    console.log('known', knownUsers.map(one => one.domain ? `${one.domain}\\${one.user}` : one.user).join(','))
    const found = knownUsers.find(one => one.user === wanted)
    return found ? stored(found) : 'cancel'
  },
  resolved: ({ outcome, user }) => {
    console.log('resolved', outcome, user)
    // The error causes a warning, and does not affect the fetch.
    throw new Error('mine')
  },
})
console.log('body', (await broker.fetch(url)).body.toString())
broker.close()
