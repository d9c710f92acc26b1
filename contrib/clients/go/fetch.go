package watchword

import (
	"bufio"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"net"
	"sync"
)

// Request describes a fetch; only URL is required.
type Request struct {
	URL     string
	Method  string
	Headers [][2]string
	// Body is streamed to the server. Size is its size in bytes, or 0 if unknown.
	Body io.Reader
	Size int64
	// Params are further parameters of fetch/run, such as "timeoutMs" or "credential".
	Params map[string]any
}

// Response is a response with its whole body.
type Response struct {
	Head
	Body []byte
}

// Stream is a response whose body is still to be read. Body returns io.EOF only if the body is complete. The caller closes it.
type Stream struct {
	Head
	Body io.ReadCloser
}

// Completed returns the result of the fetch after Body has been read to its end; Auth is known only then.
func (s *Stream) Completed() Head {
	body := s.Body.(*body)
	body.steps.lock.Lock()
	defer body.steps.lock.Unlock()
	return body.steps.end
}

func (r Request) params() map[string]any {
	params := map[string]any{"url": r.URL}
	if r.Method != "" {
		params["method"] = r.Method
	}
	if r.Headers != nil {
		params["headers"] = r.Headers
	}
	for name, value := range r.Params {
		params[name] = value
	}
	return params
}

// Fetch makes one fetch. A response is a result, whatever its status, and not an error.
func (c *Client) Fetch(ctx context.Context, request Request) (*Response, error) {
	if request.Body != nil {
		stream, err := c.Open(ctx, request)
		if err != nil {
			return nil, err
		}
		defer stream.Body.Close()
		body, err := io.ReadAll(stream.Body)
		return &Response{stream.Head, body}, err
	}
	var result struct {
		Head
		Body bodyValue
	}
	if err := c.Call(ctx, "fetch/run", request.params(), &result); err != nil {
		return nil, err
	}
	body, err := c.all(ctx, result.Body)
	return &Response{result.Head, body}, err
}

func (c *Client) all(ctx context.Context, body bodyValue) ([]byte, error) {
	if body.Type != "handle" {
		return body.bytes()
	}
	var whole []byte
	for {
		var part struct {
			Data bodyValue
			EOF  bool
		}
		if err := c.Call(ctx, "fetch/read", map[string]any{"fetchId": body.FetchID, "maxBytes": 1 << 20}, &part); err != nil {
			if ctx.Err() != nil {
				c.cancel(body.FetchID)
			}
			return nil, err
		}
		bytes, err := part.Data.bytes()
		whole = append(whole, bytes...)
		if err != nil || part.EOF {
			return whole, err
		}
	}
}

func (b bodyValue) bytes() ([]byte, error) {
	if b.Type == "base64" {
		return base64.StdEncoding.DecodeString(b.Value)
	}
	return []byte(b.Value), nil
}

// Open begins a fetch whose response body is streamed. If ctx ends before the end of the body, the fetch is cancelled.
func (c *Client) Open(ctx context.Context, request Request) (*Stream, error) {
	params := request.params()
	if request.Body != nil {
		body := map[string]any{"type": "attach"}
		if request.Size > 0 {
			body["sizeBytes"] = request.Size
		}
		params["body"] = body
	}
	var started struct{ FetchID, AttachToken string }
	if err := c.Call(ctx, "fetch/start", params, &started); err != nil {
		return nil, err
	}
	steps := c.fetch(started.FetchID)
	giveUp := func(err error) (*Stream, error) {
		c.cancel(started.FetchID)
		c.forget(started.FetchID)
		return nil, err
	}
	if request.Body != nil {
		go c.upload(ctx, started.AttachToken, request.Body, steps)
	}
	if err := steps.wait(ctx, c, steps.begun); err != nil {
		return giveUp(err)
	}
	conn, reader, err := c.attach(ctx, started.AttachToken, "response")
	if err != nil {
		return giveUp(err)
	}
	body := &body{reader: reader, conn: conn, client: c, steps: steps, ctx: ctx, id: started.FetchID, over: make(chan struct{})}
	go body.watch()
	return &Stream{steps.head, body}, nil
}

func (c *Client) forget(id string) {
	c.lock.Lock()
	delete(c.fetches, id)
	c.lock.Unlock()
}

func (c *Client) attach(ctx context.Context, token, side string) (*net.UnixConn, *bufio.Reader, error) {
	opened, err := c.open(ctx)
	if err != nil {
		return nil, nil, err
	}
	conn := opened.(*net.UnixConn)
	line, _ := json.Marshal(map[string]any{
		"jsonrpc": "2.0", "id": 1, "method": "fetch/attach", "params": map[string]string{"token": token, "side": side}})
	reader := bufio.NewReaderSize(conn, 1<<16)
	var reply message
	if _, err = conn.Write(append(line, '\n')); err == nil {
		line, err = reader.ReadBytes('\n')
	}
	if err != nil {
		err = &ClosedError{c.path}
	} else if err = json.Unmarshal(line, &reply); err == nil && reply.Error != nil {
		err = reply.Error
	}
	if err != nil {
		conn.Close()
		return nil, nil, err
	}
	return conn, reader, nil
}

// upload sends a request body. It reports only errors of source; the broker reports others at the end of the fetch.
func (c *Client) upload(ctx context.Context, token string, source io.Reader, steps *steps) {
	conn, _, err := c.attach(ctx, token, "request")
	if err != nil {
		return
	}
	defer conn.Close()
	reading := &noted{source: source}
	if _, err := io.Copy(conn, reading); reading.err != nil {
		steps.fail(reading.err)
		return
	} else if err != nil {
		return
	}
	_ = conn.CloseWrite()
	// Until the fetch ends, only the sending half is closed: a full close would look like a crash of this program.
	_ = steps.wait(ctx, c, steps.ended)
}

// noted records the read errors of source, to distinguish them from the write errors of io.Copy.
type noted struct {
	source io.Reader
	err    error
}

func (n *noted) Read(buffer []byte) (int, error) {
	count, err := n.source.Read(buffer)
	if err != nil && !errors.Is(err, io.EOF) {
		n.err = err
	}
	return count, err
}

type completion struct {
	Head
	Error *Error
}

// steps is the state of a fetch begun with fetch/start.
type steps struct {
	lock         sync.Mutex
	begun, ended chan struct{}
	head, end    Head
	err          error
	hasBegun     bool
	hasEnded     bool
}

func newSteps() *steps { return &steps{begun: make(chan struct{}), ended: make(chan struct{})} }

func (s *steps) tell(told completion, isEnd bool) {
	if isEnd && told.Error != nil {
		s.fail(told.Error)
		return
	}
	s.settle(&told.Head, nil, isEnd)
}

func (s *steps) fail(err error) { s.settle(nil, err, true) }

func (s *steps) settle(head *Head, err error, isEnd bool) {
	s.lock.Lock()
	defer s.lock.Unlock()
	if s.hasEnded {
		return
	}
	if !s.hasBegun {
		if head != nil {
			s.head = *head
		}
		s.hasBegun = true
		defer close(s.begun)
	}
	if isEnd {
		if head != nil {
			s.end = *head
		}
		s.err, s.hasEnded = err, true
		defer close(s.ended)
	}
}

func (s *steps) wait(ctx context.Context, c *Client, what chan struct{}) error {
	select {
	case <-what:
		return s.failure()
	case <-ctx.Done():
		return ctx.Err()
	case <-c.closed:
		select {
		case <-what:
			return s.failure()
		default:
			return &ClosedError{c.path}
		}
	}
}

func (s *steps) failure() error {
	s.lock.Lock()
	defer s.lock.Unlock()
	return s.err
}

type body struct {
	reader *bufio.Reader
	conn   *net.UnixConn
	client *Client
	steps  *steps
	ctx    context.Context
	id     string
	over   chan struct{}
	once   sync.Once
}

func (b *body) Read(buffer []byte) (int, error) {
	count, err := b.reader.Read(buffer)
	if err == nil || count > 0 {
		return count, nil
	}
	if b.ctx.Err() != nil {
		return 0, b.ctx.Err()
	}
	// The end of the stream does not prove that the body is complete.
	if err := b.steps.wait(b.ctx, b.client, b.steps.ended); err != nil {
		return 0, err
	}
	return 0, io.EOF
}

// Close closes the body, and cancels the fetch if it has not ended.
func (b *body) Close() error {
	b.once.Do(func() {
		close(b.over)
		b.conn.Close()
		b.client.forget(b.id)
	})
	return nil
}

func (b *body) watch() {
	select {
	case <-b.ctx.Done():
		b.conn.Close()
	case <-b.over:
	}
}
