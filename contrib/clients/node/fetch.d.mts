import type { ConnectOptions, FetchParameters, Head, Result } from './watchword.mjs'

/** A Response that also has the result of `fetch/run`. */
export class WatchwordResponse extends Response {
  /** For a request body sent over a connection of its own, `auth` is present once the response body has been read. */
  readonly watchword: Readonly<Head & Partial<Result>>
  clone(): WatchwordResponse
}

export type Fetch = (input: string | URL | Request, init?: RequestInit) => Promise<WatchwordResponse>

/** Returns a `fetch` that connects to the broker on first use. `FetchParameters` are added to each fetch. */
export function createFetch(options?: ConnectOptions & FetchParameters): Fetch

/** The `fetch` of a program that leaves its challenges to the desktop agent. */
export const fetch: Fetch
