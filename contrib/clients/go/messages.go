package watchword

import "encoding/json"

// ProtectionSpace is the scope in which a credential is valid. Realm is untrusted text from the server.
type ProtectionSpace struct {
	Protocol                   string          `json:"protocol"`
	Host                       string          `json:"host"`
	Port                       int             `json:"port"`
	Realm                      string          `json:"realm"`
	AuthenticationMethod       string          `json:"authenticationMethod"`
	IsProxy                    bool            `json:"isProxy"`
	ReceivesCredentialSecurely bool            `json:"receivesCredentialSecurely"`
	ServerTrust                json.RawMessage `json:"serverTrust"`
}

// KnownUser is a stored login that matches a challenge; Stored answers with it. Domain can be empty.
type KnownUser struct {
	ID     string `json:"id"`
	User   string `json:"user"`
	Domain string `json:"domain"`
	Source string `json:"source"`
}

// Resolved is the outcome of an answer. Outcome is accepted, refused, abandoned or superseded; User is the user of the login.
type Resolved struct {
	ChallengeID string `json:"challengeId"`
	Outcome     string `json:"outcome"`
	User        string `json:"user"`
}

// SessionLimits are the times after which an answer for the session is removed: without use, unless IdleMs is nil, and in any case.
type SessionLimits struct {
	IdleMs     *int `json:"idleMs"`
	LifetimeMs int  `json:"lifetimeMs"`
}

// TokenLogin is a login in a browser that also answers a challenge, which the broker then withdraws. Flow is browser, or device, for
// which UserCode is typed at URL; CompleteURL, which can be empty, contains it. ExpiresAt is in RFC 3339.
type TokenLogin struct {
	Flow        string   `json:"flow"`
	Issuer      string   `json:"issuer"`
	ClientID    string   `json:"clientId"`
	Scopes      []string `json:"scopes"`
	URL         string   `json:"url"`
	CompleteURL string   `json:"completeUrl"`
	UserCode    string   `json:"userCode"`
	ExpiresAt   string   `json:"expiresAt"`
}

// Challenge is a challenge of the broker. Raw contains all of its members.
type Challenge struct {
	ID                   string          `json:"challengeId"`
	FetchID              string          `json:"fetchId"`
	URL                  string          `json:"url"`
	Method               string          `json:"method"`
	ProtectionSpace      ProtectionSpace `json:"protectionSpace"`
	KnownUsers           []KnownUser     `json:"knownUsers"`
	PreviousFailureCount int             `json:"previousFailureCount"`
	Accepts              []string        `json:"accepts"`
	PersistenceAllowed   []string        `json:"persistenceAllowed"`
	SessionLimits        *SessionLimits  `json:"sessionLimits"`
	Login                *TokenLogin     `json:"login"`
	DeadlineMs           int             `json:"deadlineMs"`
	Raw                  json.RawMessage `json:"-"`
}

// Answer is the answer to a challenge: a Credential, or one of Continue, Cancel, Default and Reject.
type Answer struct {
	Action     string      `json:"action"`
	Credential *Credential `json:"credential,omitempty"`
}

// The four answers that are not a credential.
var (
	// Continue stops authenticating: the response with the challenge becomes the result, with its body.
	Continue = Answer{Action: "continue"}
	// Cancel makes the fetch fail with the kind challengeCancelled.
	Cancel = Answer{Action: "cancel"}
	// Default lets the broker decide: a stored credential, then an agent, then Continue.
	Default = Answer{Action: "default"}
	// Reject skips this scheme; the broker sends a challenge for the next offered one.
	Reject = Answer{Action: "reject"}
)

// Credential has a Type, and the members that the protocol defines for it.
type Credential struct {
	Type        string `json:"type"`
	ID          string `json:"id,omitempty"`
	User        string `json:"user,omitempty"`
	Password    string `json:"password,omitempty"`
	Domain      string `json:"domain,omitempty"`
	Token       string `json:"token,omitempty"`
	Scheme      string `json:"scheme,omitempty"`
	Value       string `json:"value,omitempty"`
	State       string `json:"state,omitempty"`
	Certificate string `json:"certificate,omitempty"`
	PrivateKey  string `json:"privateKey,omitempty"`
	Passphrase  string `json:"passphrase,omitempty"`
	SPKISHA256  string `json:"spkiSha256,omitempty"`
	Persistence string `json:"persistence,omitempty"`
}

// MarshalJSON includes the user and the password of a password credential even if they are empty, because both are required.
func (c Credential) MarshalJSON() ([]byte, error) {
	type plain Credential
	if c.Type != "password" {
		return json.Marshal(plain(c))
	}
	return json.Marshal(struct {
		plain
		User     string `json:"user"`
		Password string `json:"password"`
	}{plain(c), c.User, c.Password})
}

// String omits the secret, so that it does not appear in logs.
func (c Credential) String() string { return "credential of type " + c.Type }

// GoString omits the secret, so that it does not appear in logs.
func (c Credential) GoString() string { return c.String() }

// Password answers with user and password.
func Password(user, password string) Answer {
	return With(Credential{Type: "password", User: user, Password: password})
}

// Stored answers with a stored login that the challenge lists, without its password.
func Stored(known KnownUser) Answer { return With(Credential{Type: "stored", ID: known.ID}) }

// With answers with credential.
func With(credential Credential) Answer { return Answer{Action: "credential", Credential: &credential} }

// Authentication describes the credential that the server accepted last.
type Authentication struct {
	Method string `json:"authenticationMethod"`
	Source string `json:"source"`
	User   string `json:"user"`
}

// Head is a response without its body. BodyBytes is nil if the server did not announce a length.
type Head struct {
	FetchID     string          `json:"fetchId"`
	Status      int             `json:"status"`
	URL         string          `json:"url"`
	HTTPVersion string          `json:"httpVersion"`
	Headers     [][2]string     `json:"headers"`
	BodyBytes   *int64          `json:"bodyBytes"`
	Auth        *Authentication `json:"auth"`
}

type bodyValue struct {
	Type    string `json:"type"`
	Value   string `json:"value"`
	FetchID string `json:"fetchId"`
}

type message struct {
	ID     json.RawMessage
	Method string
	Params json.RawMessage
	Result json.RawMessage
	Error  *Error
}

// UnmarshalJSON matches member names exactly. In structs, encoding/json also accepts "ID" for "id" and "\u212A" for "k".
func (m *message) UnmarshalJSON(line []byte) error {
	var members map[string]json.RawMessage
	if err := json.Unmarshal(line, &members); err != nil {
		return err
	}
	m.ID, m.Params, m.Result = members["id"], members["params"], members["result"]
	for name, into := range map[string]any{"method": &m.Method, "error": &m.Error} {
		if value, isThere := members[name]; isThere {
			if err := json.Unmarshal(value, into); err != nil {
				return err
			}
		}
	}
	return nil
}
