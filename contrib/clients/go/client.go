// Package watchword is a client for the Watchword credential broker.
package watchword

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"net"
	"os"
	"strconv"
	"strings"
	"sync"
)

// Options are the options of Dial; all are optional.
type Options struct {
	// Answer answers challenges; without it, they are sent to an agent. Its context ends when the challenge is withdrawn. An error
	// cancels the fetch.
	Answer func(context.Context, Challenge) (Answer, error)
	// Resolved is called with the outcome of an answer before the fetch returns. It must not block.
	Resolved func(Resolved)
	// Path of the broker's socket; SocketPath() if empty.
	Path string
	// Name of this program in prompts; "go" if empty.
	Name string
}

// Client is a connection to the broker. It is safe for concurrent use.
type Client struct {
	path     string
	answer   func(context.Context, Challenge) (Answer, error)
	resolved func(Resolved)
	conn     net.Conn
	writing  sync.Mutex

	lock      sync.Mutex
	lastID    int
	waiting   map[int]chan message
	fetches   map[string]*steps
	questions map[string]context.CancelFunc
	closed    chan struct{}
}

// SocketPath returns $WATCHWORD_SOCKET, or else the default path below $XDG_RUNTIME_DIR or /run/user/UID.
func SocketPath() string {
	if path := os.Getenv("WATCHWORD_SOCKET"); path != "" {
		return path
	}
	runtime := os.Getenv("XDG_RUNTIME_DIR")
	if !strings.HasPrefix(runtime, "/") {
		runtime = "/run/user/" + strconv.Itoa(os.Getuid())
	}
	return runtime + "/watchword/broker.sock"
}

// Dial connects to the broker.
func Dial(ctx context.Context, options Options) (*Client, error) {
	client := &Client{
		path: options.Path, answer: options.Answer, resolved: options.Resolved, waiting: map[int]chan message{},
		fetches: map[string]*steps{}, questions: map[string]context.CancelFunc{}, closed: make(chan struct{})}
	if client.path == "" {
		client.path = SocketPath()
	}
	if options.Name == "" {
		options.Name = "go"
	}
	var err error
	if client.conn, err = client.open(ctx); err != nil {
		return nil, err
	}
	go client.receive()
	capabilities := map[string]any{}
	if options.Answer != nil {
		capabilities["challenge"] = map[string]string{"delivery": "request"}
	}
	params := map[string]any{"client": map[string]string{"name": options.Name, "version": Version}, "protocolVersion": 1, "capabilities": capabilities}
	if err := client.Call(ctx, "initialize", params, nil); err != nil {
		client.Close()
		return nil, err
	}
	return client, nil
}

// Close closes the connection, which cancels its running fetches.
func (c *Client) Close() error { return c.conn.Close() }

// Call calls any method of the protocol. If ctx ends before the reply, the call is cancelled.
func (c *Client) Call(ctx context.Context, method string, params, result any) error {
	reply := make(chan message, 1)
	c.lock.Lock()
	c.lastID++
	id := c.lastID
	c.waiting[id] = reply
	c.lock.Unlock()
	if params == nil {
		params = struct{}{}
	}
	if err := c.send(map[string]any{"id": id, "method": method, "params": params}); err != nil {
		c.dropReply(id)
		return err
	}
	select {
	case message := <-reply:
		return message.decode(result)
	case <-ctx.Done():
		c.dropReply(id)
		_ = c.send(map[string]any{"method": "$/cancelRequest", "params": map[string]int{"id": id}})
		return ctx.Err()
	case <-c.closed:
		// A reply that was received before the end counts: select chooses at random between the two.
		select {
		case message := <-reply:
			return message.decode(result)
		default:
			return &ClosedError{c.path}
		}
	}
}

func (c *Client) dropReply(id int) {
	c.lock.Lock()
	defer c.lock.Unlock()
	delete(c.waiting, id)
}

// decode stores the result of a reply, or returns its error.
func (m message) decode(result any) error {
	if m.Error != nil {
		return m.Error
	}
	if result == nil {
		return nil
	}
	return json.Unmarshal(m.Result, result)
}

func (c *Client) open(ctx context.Context) (net.Conn, error) {
	if err := checkDirectory(c.path); err != nil {
		return nil, err
	}
	conn, err := (&net.Dialer{}).DialContext(ctx, "unix", c.path)
	if err != nil && ctx.Err() == nil {
		var reason *os.SyscallError
		if errors.As(err, &reason) {
			err = reason.Err
		}
		return nil, &NotRunningError{c.path, err}
	}
	if err == nil {
		if err = checkPeer(conn, c.path); err != nil {
			conn.Close()
			return nil, err
		}
	}
	return conn, err
}

func (c *Client) send(members map[string]any) error {
	members["jsonrpc"] = "2.0"
	line, err := json.Marshal(members)
	if err != nil {
		return err
	}
	c.writing.Lock()
	defer c.writing.Unlock()
	if _, err := c.conn.Write(append(line, '\n')); err != nil {
		return &ClosedError{c.path}
	}
	return nil
}

func (c *Client) receive() {
	reader := bufio.NewReaderSize(c.conn, 1<<16)
	for {
		line, err := reader.ReadBytes('\n')
		var message message
		if err != nil || json.Unmarshal(line, &message) != nil {
			break
		}
		c.take(message)
	}
	c.conn.Close()
	c.lock.Lock()
	defer c.lock.Unlock()
	close(c.closed)
	for _, withdraw := range c.questions {
		withdraw()
	}
}

func (c *Client) take(m message) {
	switch {
	case m.Method == "auth/challenge":
		ctx, withdraw := context.WithCancel(context.Background())
		c.lock.Lock()
		c.questions[string(m.ID)] = withdraw
		c.lock.Unlock()
		go c.reply(ctx, m)
	case m.Method == "$/cancelRequest":
		var params struct {
			ID json.RawMessage `json:"id"`
		}
		if json.Unmarshal(m.Params, &params) == nil {
			c.withdraw(string(params.ID))
		}
	case m.Method == "auth/resolved":
		var end Resolved
		if c.resolved != nil && json.Unmarshal(m.Params, &end) == nil {
			c.resolved(end)
		}
	case m.Method == "fetch/headers" || m.Method == "fetch/completed":
		var end completion
		if json.Unmarshal(m.Params, &end) == nil {
			if steps := c.fetch(end.FetchID); steps != nil {
				steps.tell(end, m.Method == "fetch/completed")
			}
		}
	case m.Method != "" && m.ID != nil:
		failure := map[string]any{"code": -32601, "message": "method not supported by this client"}
		_ = c.send(map[string]any{"id": m.ID, "error": failure})
	case m.Method == "":
		c.takeReply(m)
	}
}

func (c *Client) takeReply(m message) {
	id, err := strconv.Atoi(string(m.ID))
	var started struct{ FetchID, AttachToken string }
	_ = json.Unmarshal(m.Result, &started)
	c.lock.Lock()
	reply, isWanted := c.waiting[id]
	delete(c.waiting, id)
	if isWanted && started.AttachToken != "" {
		// The notifications of this fetch follow, and may be read before the caller continues.
		c.fetches[started.FetchID] = newSteps()
	}
	c.lock.Unlock()
	if err == nil && isWanted {
		reply <- m
	} else if started.AttachToken != "" {
		// The caller has cancelled meanwhile, and does not know the id with which to cancel the fetch.
		c.cancel(started.FetchID)
	}
}

func (c *Client) reply(ctx context.Context, m message) {
	answer := Cancel
	var challenge Challenge
	if c.answer == nil {
		answer = Default
	} else if json.Unmarshal(m.Params, &challenge) == nil {
		challenge.Raw = m.Params
		if given, err := c.answer(ctx, challenge); err == nil {
			answer = given
		}
	}
	if ctx.Err() == nil {
		_ = c.send(map[string]any{"id": m.ID, "result": answer})
	}
	c.withdraw(string(m.ID))
}

func (c *Client) withdraw(id string) {
	c.lock.Lock()
	defer c.lock.Unlock()
	if withdraw := c.questions[id]; withdraw != nil {
		withdraw()
		delete(c.questions, id)
	}
}

func (c *Client) fetch(id string) *steps {
	c.lock.Lock()
	defer c.lock.Unlock()
	return c.fetches[id]
}

// cancel cancels a fetch. The reply is ignored: with or without an error, the fetch has ended.
func (c *Client) cancel(fetchID string) {
	c.lock.Lock()
	c.lastID++
	id := c.lastID
	c.lock.Unlock()
	_ = c.send(map[string]any{"id": id, "method": "fetch/cancel", "params": map[string]string{"fetchId": fetchID}})
}
