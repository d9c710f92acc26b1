package main

import (
	"bytes"
	"context"
	"log"
	"os"

	watchword "watchword.invalid/watchword/contrib/clients/go"
)

func main() {
	page, err := watchword.Get(context.Background(), os.Args[1], func(_ context.Context, challenge watchword.Challenge) (watchword.Answer, error) {
		if challenge.PreviousFailureCount > 0 {
			return watchword.Cancel, nil
		}
		login, err := os.ReadFile(os.Getenv("LOGIN_FILE"))
		user, password, _ := bytes.Cut(bytes.TrimRight(login, "\n"), []byte("\n"))
		return watchword.Password(string(user), string(password)), err
	})
	if err != nil {
		log.Fatal(err)
	}
	os.Stdout.Write(page.Body)
}
