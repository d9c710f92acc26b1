package watchword

import "encoding/json"

// ProtectionSpace is what a credential is for. Realm is the server's own text, and may say anything.
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

// KnownUser is a stored login that fits a challenge, to be answered with Stored. Domain is empty where it has none.
type KnownUser struct {
	ID     string `json:"id"`
	User   string `json:"user"`
	Domain string `json:"domain"`
	Source string `json:"source"`
}

// Resolved is how an answer ended: Outcome is accepted, refused, abandoned or superseded, and User who was accepted or refused.
type Resolved struct {
	ChallengeID string `json:"challengeId"`
	Outcome     string `json:"outcome"`
	User        string `json:"user"`
}

// Challenge is what the broker asks; Raw has all of it.
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
	DeadlineMs           int             `json:"deadlineMs"`
	Raw                  json.RawMessage `json:"-"`
}

// Answer is what a challenge is answered with: a Credential, or one of Continue, Cancel, Default and Reject.
type Answer struct {
	Action     string      `json:"action"`
	Credential *Credential `json:"credential,omitempty"`
}

// The four answers that are not a credential.
var (
	// Continue means no more authentication: the response that asked becomes the result, with its body.
	Continue = Answer{Action: "continue"}
	// Cancel ends the fetch with the kind challengeCancelled.
	Cancel = Answer{Action: "cancel"}
	// Default means as though nobody had been asked here: what is stored, then an agent, else Continue.
	Default = Answer{Action: "default"}
	// Reject asks again, with the next scheme that was offered.
	Reject = Answer{Action: "reject"}
)

// Credential has a Type, and the members that the protocol says of it.
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

// MarshalJSON writes user and password of a password even where they are empty: both have to be there.
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

// String keeps secrets out of logs.
func (c Credential) String() string { return "credential of type " + c.Type }

// GoString keeps secrets out of logs.
func (c Credential) GoString() string { return c.String() }

// Password answers with user and password.
func Password(user, password string) Answer {
	return With(Credential{Type: "password", User: user, Password: password})
}

// Stored answers with a stored login that the challenge lists: nobody has to type its password.
func Stored(known KnownUser) Answer { return With(Credential{Type: "stored", ID: known.ID}) }

// With answers with a credential.
func With(credential Credential) Answer { return Answer{Action: "credential", Credential: &credential} }

// Authentication says which credential the server has accepted last.
type Authentication struct {
	Method string `json:"authenticationMethod"`
	Source string `json:"source"`
	User   string `json:"user"`
}

// Head is a response without its body. BodyBytes is nil where the server has not announced it.
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

// UnmarshalJSON takes members by their very names: for structs, the package json takes "ID" and "\u212A" for "id" and "k", too.
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
