package watchword

import (
	"encoding/json"
	"fmt"
)

// Error is what the broker says went wrong. Kind is stable; Retry is "never", "later" or "differently".
type Error struct {
	Code    int
	Message string
	Kind    string
	Retry   string
}

func (e *Error) Error() string { return fmt.Sprintf("%s (%s)", e.Message, e.Kind) }

// Retriable says whether the very same may work another time.
func (e *Error) Retriable() bool { return e.Retry == "later" }

// UnmarshalJSON reads the error of a reply.
func (e *Error) UnmarshalJSON(text []byte) error {
	var wire struct {
		Code    int
		Message string
		Data    struct{ Detail, Kind, Retry string }
	}
	if err := json.Unmarshal(text, &wire); err != nil {
		return err
	}
	*e = Error{Code: wire.Code, Message: wire.Message, Kind: wire.Data.Kind, Retry: wire.Data.Retry}
	if wire.Data.Detail != "" {
		e.Message = wire.Data.Detail
	}
	return nil
}

// NotRunningError says that nobody listens at Path.
type NotRunningError struct {
	Path string
	Err  error
}

func (e *NotRunningError) Error() string {
	return fmt.Sprintf("no broker listens at %s (%v): start one with `systemctl --user start watchword.socket` or `watchwordd`", e.Path, e.Err)
}

func (e *NotRunningError) Unwrap() error { return e.Err }

// NotTrustedError says that another user listens at Path, or could: nothing was sent.
type NotTrustedError struct{ Path, Reason string }

func (e *NotTrustedError) Error() string {
	return fmt.Sprintf("refusing to use the socket %s: %s; it has to be in a directory that only you can write to, such as $XDG_RUNTIME_DIR/watchword", e.Path, e.Reason)
}

// ClosedError says that the broker at Path went away in the middle of it.
type ClosedError struct{ Path string }

func (e *ClosedError) Error() string {
	return fmt.Sprintf("the broker at %s has closed the connection: look at its log, connect and try again", e.Path)
}
