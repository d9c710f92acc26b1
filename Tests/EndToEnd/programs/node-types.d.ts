// The types of Node that the Node client's declarations use, in place of @types/node, which Debian does not have.
interface Buffer extends Uint8Array { toString(encoding?: string): string }
declare module 'node:stream' {
  export interface Readable extends AsyncIterable<Buffer> { destroy(): this }
}
