import type { Readable } from 'node:stream'

export type AuthenticationMethod =
  'httpBasic' | 'httpDigest' | 'ntlm' | 'negotiate' | 'bearer' | 'other' | 'clientCertificate' | 'serverTrust'
export type Persistence = 'none' | 'forSession' | 'permanent'
export type CredentialSource = 'explicit' | 'url' | 'session' | 'keyring' | 'client' | 'agent' | 'ambient' | 'netrc' | 'command'

/** The credential that was accepted. `user` is null for a credential without a user. */
export interface Authentication { authenticationMethod: AuthenticationMethod, source: CredentialSource, user: string | null }

/** The head of a response. */
export interface Head {
  fetchId: string
  status: number
  reason?: string
  /** The received bytes, in base64, of the texts that are not UTF-8; those of `headers` by their index. */
  rawBytes?: { reason?: string, headers?: Record<string, string> }
  url: string
  httpVersion: '1.0' | '1.1' | '2'
  headers: [string, string][]
  bodyBytes: number | null
}

export type NoRespondent = 'interaction' | 'canAuthenticate' | 'unsubscribed' | 'noAgent' | 'stopped' | 'consentDenied'
export interface UnansweredScheme {
  scheme: string
  reason: 'noRealm' | 'noQop' | 'malformed' | 'notListed' | 'excluded' | 'needsTLS' | 'noTicket'
    | 'noChallenge' | 'noRespondent'
}

/** The result of `fetch/run`, without its body. */
export interface Result extends Head {
  auth: Authentication | null
  proxyAuth?: Authentication
  exchanges: number
  timingsMs: { total: number, challenge: number }
  unanswered?: UnansweredScheme[]
  noRespondent?: NoRespondent
  proxyUnanswered?: UnansweredScheme[]
  proxyNoRespondent?: NoRespondent
}

export interface CertificateFacts {
  pem: string
  subject: string
  issuer: string
  notBefore: string
  notAfter: string
  sha256: string
  spkiSha256: string
  subjectAltNames: string[]
}

/** The scope in which a credential is valid. `realm` is untrusted text from the server. */
export interface ProtectionSpace {
  protocol: 'http' | 'https' | 'socks'
  host: string
  port: number
  realm: string | null
  authenticationMethod: AuthenticationMethod
  isProxy: boolean
  proxyType?: 'http' | 'https' | 'socks'
  receivesCredentialSecurely: boolean
  serverTrust?: {
    chain: CertificateFacts[]
    problems: ('selfSigned' | 'untrustedIssuer' | 'expired' | 'notYetValid' | 'hostMismatch' | 'revoked' | 'weakKey' | 'changed')[]
  }
  distinguishedNames?: string[]
}

export interface Offer {
  scheme: string
  authenticationMethod: AuthenticationMethod
  realm: string | null
  params: Record<string, string>
  raw: string
  supported: boolean
  weak?: ('noRealm' | 'noQop' | 'unquotedRealm')[]
}

/** A stored credential that matches a challenge, for `stored`. */
export interface KnownUser { id: string, user: string, domain?: string, source: 'session' | 'keyring' }

/** A login in a browser that also answers a challenge, which the broker then withdraws. */
export type TokenLogin = { issuer: string, clientId: string, scopes: string[], url: string, expiresAt: string } &
  ({ flow: 'browser' } | { flow: 'device', userCode: string, completeUrl?: string })

/** The parameters of `auth/challenge`. */
export interface Challenge {
  challengeId: string
  fetchId: string
  protectionSpace: ProtectionSpace
  offers: Offer[]
  proposedCredential: { user: string | null, hasPassword: boolean, source: CredentialSource } | null
  previousFailureCount: number
  failureResponse: { status: number, headers: [string, string][] } | null
  error: { kind: string, message: string } | null
  accepts: ('password' | 'token' | 'header' | 'certificate' | 'trust')[]
  persistenceAllowed: Persistence[]
  /** How long an answer for the session is stored; present if `persistenceAllowed` contains it. `idleMs` is absent for `serverTrust`. */
  sessionLimits?: { idleMs?: number, lifetimeMs: number }
  url: string
  method: string
  requester: { name: string | null, pid: number, subject: string, script?: { path: string }, restricted?: boolean }
  deadlineMs: number
  knownUsers?: KnownUser[]
  state?: string
  downgrade?: true
  formerRealm?: string
  certificateException?: string
  namedProxy?: string
  login?: TokenLogin
  handler?: 'fetch'
  requestId?: string | number | null
}

/** The parameters of `auth/resolved`. */
export interface Resolved {
  challengeId: string
  action: 'credential' | 'continue' | 'cancel' | 'default' | 'reject' | 'none'
  by: 'agent' | 'client' | 'deadline'
  outcome?: 'accepted' | 'refused' | 'abandoned' | 'superseded'
  user?: string
}

export interface Login {
  user: string
  password: string
  domain?: string
  path?: string
  expiresAt?: string
  refreshToken?: string
  persistence?: Persistence
}
export type LoginCredential =
  | { type: 'password' } & Login
  | { type: 'token', token: string, expiresAt?: string, refreshToken?: string, persistence?: Persistence }
  | { type: 'header', scheme: string, value: string, state?: string, persistence?: Persistence }
export type CertificateCredential =
  { type: 'certificate', certificate: string, privateKey?: string, passphrase?: string, persistence?: Persistence }
export type TrustCredential = { type: 'trust', spkiSha256: string, persistence?: Persistence }
export type StoredCredential = { type: 'stored', id: string }
export type Credential =
  LoginCredential | CertificateCredential | TrustCredential | StoredCredential | { type: 'proposed', persistence?: Persistence }
export type Decision = 'continue' | 'cancel' | 'default' | 'reject'
/** `null` and `undefined` mean 'continue'. */
export type Answer =
  Login | Credential | Decision | { action: Decision } | { action: 'credential', credential: Credential } | null | undefined

/** The request body; a Readable is an AsyncIterable. */
export type Data = string | Uint8Array | AsyncIterable<Uint8Array> | Iterable<Uint8Array>

/** The parameters of `fetch/run`; the specification explains them. */
export interface FetchParameters {
  auth?: {
    interaction?: 'self' | 'agent' | 'none'
    useStorage?: boolean
    preemptive?: boolean | 'always'
    methods?: AuthenticationMethod[]
    proxyMethods?: AuthenticationMethod[]
  }
  connectTimeoutMs?: number
  decompress?: boolean
  lowSpeed?: { bytesPerSecond: number, seconds: number }
  maxBodyBytes?: number
  maxBytesPerSecond?: number
  omitHeaders?: ('Accept' | 'User-Agent' | 'Expect')[]
  proxy?: 'none' | { url: string, credential?: LoginCredential }
  redirects?: { keepMethod?: boolean, keepPost?: (301 | 302 | 303)[], schemes?: ('http' | 'https')[] }
  timeoutMs?: number
  tls?: { trust?: 'onFailure' | 'always', certificate?: CertificateCredential, pin?: TrustCredential }
}

export interface FetchOptions extends FetchParameters {
  signal?: AbortSignal
  data?: Data
  /** The size of `data` in bytes, if known. */
  size?: number
  method?: string
  headers?: [string, string][] | Record<string, string>
  credential?: LoginCredential
  maxRedirects?: number
  notify?: string[]
}

export interface ConnectOptions {
  /** Answers challenges; the signal aborts when the challenge is withdrawn. */
  answer?: (challenge: Challenge, signal: AbortSignal) => Answer | Promise<Answer>
  resolved?: (end: Resolved) => void
  path?: string
  name?: string
}

/** An error reported by the broker. `kind` is stable. */
export class BrokerError extends Error {
  readonly code: number
  readonly kind?: string
  readonly retry: 'never' | 'later' | 'differently'
  /** Whether the same request may succeed later. */
  get retriable(): boolean
}

/** No process listens on `path`, another user does or could, or the broker closed the connection. */
export class ConnectionError extends Error {
  readonly path: string
}

export const version: string
export function stored(known: { id: string }): StoredCredential
export function socketPath(environment?: Record<string, string | undefined>): string

/** A connection to the broker, for any number of concurrent fetches. */
export class Watchword {
  private constructor()
  static connect(options?: ConnectOptions & { background?: boolean }): Promise<Watchword>
  get isOpen(): boolean
  close(): void
  fetch(url: string, options?: FetchOptions & { maxInlineBodyBytes?: number }): Promise<Result & { body: Buffer }>
  open(url: string, options?: FetchOptions & { maxInlineBodyBytes?: number }):
    Promise<Head & Partial<Result> & { body: AsyncIterable<Uint8Array>, completed: Promise<Result> }>
  stream(url: string, options?: FetchOptions): Promise<Head & { body: Readable, completed: Promise<Result> }>
  call(method: string, params?: object, options?: { signal?: AbortSignal }): Promise<any>
}
