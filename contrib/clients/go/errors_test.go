package watchword

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"os"
	"syscall"
	"testing"
)

func TestErrorsAreFoundByTheirKind(t *testing.T) {
	var reply message
	line := `{"id":1,"error":{"code":1022,"message":"too slow","data":{"kind":"timedOut","retry":"later"}}}`
	if err := json.Unmarshal([]byte(line), &reply); err != nil {
		t.Fatal(err)
	}
	err := fmt.Errorf("report: %w", reply.decode(nil))
	if !errors.Is(err, KindTimedOut) || errors.Is(err, KindBusy) || errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("kind of %v", err)
	}
	var found *Error
	if !errors.As(err, &found) || !found.Retriable() || found.Code != 1022 {
		t.Errorf("%v is not an *Error", err)
	}
	if wrapped := (&url.Error{Op: "Get", URL: "https://h/", Err: found}); !wrapped.Timeout() {
		t.Error("net/http does not recognise the time limit")
	}
}

func TestWithoutABrokerTheReasonIsKnown(t *testing.T) {
	_, err := Dial(context.Background(), Options{Path: noSocket(t)})
	var missing *NotRunningError
	if !errors.As(err, &missing) || !errors.Is(err, syscall.ENOENT) {
		t.Errorf("got %v", err)
	}
}

func TestAnEndedContextIsTheError(t *testing.T) {
	ctx, stop := context.WithCancel(context.Background())
	stop()
	if _, err := Dial(ctx, Options{Path: noSocket(t)}); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

// noSocket returns the path of a missing socket in a directory that the client trusts.
func noSocket(t *testing.T) string {
	directory := t.TempDir()
	if err := os.Chmod(directory, 0o700); err != nil {
		t.Fatal(err)
	}
	return directory + "/none.sock"
}
