import { readFileSync } from 'node:fs'
import { Watchword } from './watchword.mjs'

function answer(challenge) {
  console.error(`${challenge.url} asks: ${JSON.stringify(challenge.protectionSpace.realm)}`)
  const [user, password] = readFileSync(process.env.LOGIN_FILE, 'utf8').split('\n')
  return challenge.previousFailureCount ? 'cancel' : { user, password }
}
const broker = await Watchword.connect({ answer })
process.stdout.write((await broker.fetch(process.argv[2])).body, () => broker.close())
