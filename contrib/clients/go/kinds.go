package watchword

// Kind identifies an error of the broker. It is itself an error, so that errors.Is can look for it:
//
//	if errors.Is(err, watchword.KindCannotConnect) {
type Kind string

// Error returns the kind as the protocol spells it.
func (k Kind) Error() string { return string(k) }

// The kinds of error that the broker reports; Protocol/errors.json describes them. A newer broker may report others.
const (
	KindParseError                Kind = "parseError"
	KindInvalidRequest            Kind = "invalidRequest"
	KindMethodNotFound            Kind = "methodNotFound"
	KindInvalidParams             Kind = "invalidParams"
	KindInternalError             Kind = "internalError"
	KindCancelled                 Kind = "cancelled"
	KindBadURL                    Kind = "badURL"
	KindInvalidHeader             Kind = "invalidHeader"
	KindInvalidMethod             Kind = "invalidMethod"
	KindNotSupported              Kind = "notSupported"
	KindTooLarge                  Kind = "tooLarge"
	KindBusy                      Kind = "busy"
	KindShuttingDown              Kind = "shuttingDown"
	KindUnknownFetch              Kind = "unknownFetch"
	KindChallengeCancelled        Kind = "challengeCancelled"
	KindChallengeTimedOut         Kind = "challengeTimedOut"
	KindTooManyAttempts           Kind = "tooManyAttempts"
	KindInvalidAnswer             Kind = "invalidAnswer"
	KindDenied                    Kind = "denied"
	KindLocked                    Kind = "locked"
	KindUnknownCredential         Kind = "unknownCredential"
	KindKeyringUnavailable        Kind = "keyringUnavailable"
	KindServerNotAuthentic        Kind = "serverNotAuthentic"
	KindNameNotResolved           Kind = "nameNotResolved"
	KindCannotConnect             Kind = "cannotConnect"
	KindTimedOut                  Kind = "timedOut"
	KindConnectionLost            Kind = "connectionLost"
	KindMalformedResponse         Kind = "malformedResponse"
	KindTlsFailed                 Kind = "tlsFailed"
	KindServerNotTrusted          Kind = "serverNotTrusted"
	KindClientCertificateRejected Kind = "clientCertificateRejected"
	KindProxyFailed               Kind = "proxyFailed"
	KindTooManyRedirects          Kind = "tooManyRedirects"
	KindInsecureRedirect          Kind = "insecureRedirect"
	KindBadRedirect               Kind = "badRedirect"
	KindProtocolViolation         Kind = "protocolViolation"
	KindBodyNotReplayable         Kind = "bodyNotReplayable"
	KindBodyIncomplete            Kind = "bodyIncomplete"
	KindNoAgent                   Kind = "noAgent"
	KindLoginFailed               Kind = "loginFailed"
)
