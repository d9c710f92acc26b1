// Uses features of the Go client beyond a single fetch, and prints the results as JSON. Arguments: a site of rig/clients.py.
package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"

	watchword "watchword.invalid/watchword/contrib/clients/go"
	"watchword.invalid/watchword/contrib/clients/go/httptransport"
)

type torn struct{ hasBegun bool }

func (t *torn) Read(buffer []byte) (int, error) {
	if t.hasBegun {
		return 0, errors.New("the tape is torn")
	}
	t.hasBegun = true
	return copy(buffer, "x"), nil
}

func digest(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

func kind(err error) string {
	var refused *watchword.Error
	if errors.As(err, &refused) {
		if !errors.Is(err, refused.Kind) || errors.Is(err, watchword.KindBusy) {
			return "errors.Is differs from errors.As"
		}
		return string(refused.Kind)
	}
	return fmt.Sprint(err)
}

func main() {
	site, ctx := os.Args[1], context.Background()
	login, _ := os.ReadFile(os.Getenv("LOGIN_FILE"))
	user, password, _ := strings.Cut(strings.TrimSpace(string(login)), "\n")
	var lock sync.Mutex
	counts := []int{}
	broker, err := watchword.Dial(ctx, watchword.Options{Answer: func(_ context.Context, asked watchword.Challenge) (watchword.Answer, error) {
		lock.Lock()
		defer lock.Unlock()
		counts = append(counts, asked.PreviousFailureCount)
		switch {
		case strings.HasSuffix(asked.URL, "/mistake"):
			return watchword.Answer{}, errors.New("mine")
		case strings.HasSuffix(asked.URL, "/typo"):
			return watchword.Answer{Action: "credental"}, nil
		case asked.PreviousFailureCount == 0:
			return watchword.Password(user, "wrong"), nil
		}
		return watchword.Password(user, password), nil
	}})
	must(err)
	told := map[string]any{}
	fetch := func(path string) (*watchword.Response, error) {
		return broker.Fetch(ctx, watchword.Request{URL: site + path})
	}
	put := func(path string, body io.Reader, size int64) (*watchword.Response, error) {
		return broker.Fetch(ctx, watchword.Request{URL: site + path, Method: "PUT", Body: body, Size: size})
	}
	_, err = fetch("/mistake")
	told["mistake"] = kind(err)
	_, err = fetch("/typo")
	told["typo"] = kind(err)
	counts = nil
	page, err := fetch("/page")
	must(err)
	told["wrongThenRight"], told["counts"] = string(page.Body), append([]int{}, counts...)
	large, err := broker.Open(ctx, watchword.Request{URL: site + "/large"})
	must(err)
	whole, err := io.ReadAll(large.Body)
	must(err)
	told["streamed"], told["source"] = digest(whole), large.Completed().Auth.Source
	large.Body.Close()
	var parts []byte
	for number := 0; number < 40; number++ {
		parts = append(parts, bytes.Repeat([]byte{byte(number)}, 1<<16)...)
	}
	for name, size := range map[string]int64{"uploaded": 0, "uploadedBytes": int64(len(parts))} {
		page, err = put("/echo", bytes.NewReader(parts), size)
		must(err)
		var echoed struct{ SHA256 string }
		must(json.Unmarshal(page.Body, &echoed))
		told[name] = echoed.SHA256
	}
	_, err = put("/open/echo", &torn{}, 0)
	told["torn"] = kind(err)
	_, err = fetch("/short")
	told["short"] = kind(err)
	_, err = broker.Fetch(ctx, watchword.Request{URL: "http://127.0.0.1:1/"})
	told["refused"] = kind(err)
	statuses, group := make([]int, 20), sync.WaitGroup{}
	for number := range statuses {
		group.Add(1)
		go func(number int) {
			defer group.Done()
			if page, err := fetch(fmt.Sprintf("/page?%d", number)); err == nil {
				statuses[number] = page.Status
			}
		}(number)
	}
	group.Wait()
	told["atOnce"] = statuses
	slow, err := broker.Open(ctx, watchword.Request{URL: site + "/slow"})
	must(err)
	first := make([]byte, 5)
	_, err = io.ReadFull(slow.Body, first)
	must(err)
	slow.Body.Close()
	told["first"] = string(first)
	for _, name := range []string{"aborted", "abortedStream"} {
		short, stop := context.WithTimeout(ctx, 200*time.Millisecond)
		if name == "aborted" {
			_, err = broker.Fetch(short, watchword.Request{URL: site + "/silent"})
		} else {
			_, err = broker.Open(short, watchword.Request{URL: site + "/silent"})
		}
		stop()
		told[name] = kind(err)
	}
	told["transport"] = throughTransport(broker, site, user, password)
	broker.Close()
	_, err = fetch("/page")
	told["closed"] = kind(err)
	must(json.NewEncoder(os.Stdout).Encode(told))
}

func throughTransport(broker *watchword.Client, site, user, password string) []any {
	client := &http.Client{Transport: &httptransport.Transport{Client: broker, Params: map[string]any{"auth": map[string]any{"useStorage": false}}}}
	request, _ := http.NewRequest("POST", site+"/echo", strings.NewReader("one"))
	request.SetBasicAuth(user, password)
	request.Header.Set("Content-Type", "text/plain")
	sent, err := client.Do(request)
	must(err)
	var echoed struct{ Type, Method, SHA256 string }
	must(json.NewDecoder(sent.Body).Decode(&echoed))
	cookies, err := client.Get(strings.Replace(site, "://", "://"+user+":"+password+"@", 1) + "/cookies")
	must(err)
	redirected, err := client.Get(strings.Replace(site, "://", "://"+user+":"+password+"@", 1) + "/redirect")
	must(err)
	_, err = client.Get("http://127.0.0.1:1/")
	return []any{sent.StatusCode, echoed.Type, echoed.Method, echoed.SHA256 == digest([]byte("one")), len(cookies.Cookies()),
		redirected.StatusCode, redirected.Request.URL.Path, kind(err)}
}

func must(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
