// Prints whether the Go transport leaves https after a login. Arguments: the pinned key of the server, and its URL.
package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"

	watchword "watchword.invalid/watchword/contrib/clients/go"
	"watchword.invalid/watchword/contrib/clients/go/httptransport"
)

func main() {
	login, _ := os.ReadFile(os.Getenv("LOGIN_FILE"))
	user, password, _ := strings.Cut(strings.TrimSpace(string(login)), "\n")
	broker, err := watchword.Dial(context.Background(), watchword.Options{Answer: func(context.Context, watchword.Challenge) (watchword.Answer, error) {
		return watchword.Password(user, password), nil
	}})
	if err != nil {
		panic(err)
	}
	pin := map[string]any{"pin": map[string]any{"type": "trust", "spkiSha256": os.Args[1]}}
	// A time limit makes net/http wrap bodies.
	client := &http.Client{Timeout: 1e10, Transport: &httptransport.Transport{Client: broker, Params: map[string]any{"tls": pin}}}
	for _, path := range []string{"/next", "/staff/page"} {
		page, err := client.Get(os.Args[2] + path)
		if errors.Is(err, httptransport.ErrInsecureRedirect) {
			fmt.Println("refused")
		} else if err != nil {
			fmt.Println(err)
		} else {
			fmt.Println(page.Request.URL.Scheme, page.StatusCode)
		}
	}
}
