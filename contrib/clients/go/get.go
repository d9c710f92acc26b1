package watchword

import "context"

// Get makes one fetch on a connection of its own, for programs that make few fetches.
func Get(ctx context.Context, url string, answer func(context.Context, Challenge) (Answer, error)) (*Response, error) {
	client, err := Dial(ctx, Options{Answer: answer})
	if err != nil {
		return nil, err
	}
	defer client.Close()
	return client.Fetch(ctx, Request{URL: url})
}
