// Answers with a stored login, and prints the listed users, the outcome of the answer, and the body.
package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"strings"

	watchword "watchword.invalid/watchword/contrib/clients/go"
)

func main() {
	url, wanted, _ := strings.Cut(os.Args[1], " ")
	answer := func(_ context.Context, challenge watchword.Challenge) (watchword.Answer, error) {
		answer, names := watchword.Cancel, []string{}
		for _, known := range challenge.KnownUsers {
			name := known.User
			if known.Domain != "" {
				name = known.Domain + `\` + name
			}
			names = append(names, name)
			if known.User == wanted {
				answer = watchword.Stored(known)
			}
		}
		fmt.Println("known", strings.Join(names, ","))
		return answer, nil
	}
	resolved := func(end watchword.Resolved) { fmt.Println("resolved", end.Outcome, end.User) }
	broker, err := watchword.Dial(context.Background(), watchword.Options{Answer: answer, Resolved: resolved})
	if err != nil {
		log.Fatal(err)
	}
	page, err := broker.Fetch(context.Background(), watchword.Request{URL: url})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Print("body ", string(page.Body))
}
