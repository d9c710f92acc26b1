package watchword

import (
	"encoding/json"
	"fmt"
)

// Error is an error reported by the broker. Kind is stable; Retry is "never", "later" or "differently". errors.As finds it, and
// errors.Is compares its Kind.
type Error struct {
	Code    int
	Message string
	Kind    Kind
	Retry   string
}

func (e *Error) Error() string { return fmt.Sprintf("%s (%s)", e.Message, e.Kind) }

// Retriable reports whether the same request may succeed later.
func (e *Error) Retriable() bool { return e.Retry == "later" }

// Timeout reports whether a time limit has passed, for url.Error and os.IsTimeout.
func (e *Error) Timeout() bool { return e.Kind == KindTimedOut || e.Kind == KindChallengeTimedOut }

// Is reports whether target is the Kind of the error.
func (e *Error) Is(target error) bool {
	kind, isKind := target.(Kind)
	return isKind && kind == e.Kind
}

// UnmarshalJSON decodes the error of a reply.
func (e *Error) UnmarshalJSON(text []byte) error {
	var wire struct {
		Code    int
		Message string
		Data    struct{ Detail, Kind, Retry string }
	}
	if err := json.Unmarshal(text, &wire); err != nil {
		return err
	}
	*e = Error{Code: wire.Code, Message: wire.Message, Kind: Kind(wire.Data.Kind), Retry: wire.Data.Retry}
	if wire.Data.Detail != "" {
		e.Message = wire.Data.Detail
	}
	return nil
}

// NotRunningError means that no process listens on Path.
type NotRunningError struct {
	Path string
	Err  error
}

func (e *NotRunningError) Error() string {
	return fmt.Sprintf("no broker listens at %s (%v); start one with `systemctl --user start watchword.socket` or `watchwordd`", e.Path, e.Err)
}

func (e *NotRunningError) Unwrap() error { return e.Err }

// NotTrustedError means that another user listens on Path, or could replace the socket. Nothing was sent.
type NotTrustedError struct{ Path, Reason string }

func (e *NotTrustedError) Error() string {
	return fmt.Sprintf("refusing to use the socket %s: %s; the socket must be in a directory that only you can write to, such as $XDG_RUNTIME_DIR/watchword", e.Path, e.Reason)
}

// ClosedError means that the broker at Path closed the connection during a call.
type ClosedError struct{ Path string }

func (e *ClosedError) Error() string {
	return fmt.Sprintf("the broker at %s closed the connection; see its log, then connect again", e.Path)
}
