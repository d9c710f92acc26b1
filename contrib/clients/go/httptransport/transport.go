// Package httptransport sends the requests of net/http through the Watchword broker.
//
//	client := &http.Client{Transport: &httptransport.Transport{Client: broker}}
package httptransport

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	watchword "watchword.invalid/watchword/contrib/clients/go"
)

// Transport is an http.RoundTripper. The http.Client follows redirects; each hop is a fetch of its own.
//
// User and password from Request.SetBasicAuth or the URL become the credential of the fetch. The broker sends them only after
// a challenge.
type Transport struct {
	Client *watchword.Client
	// Params are added to each fetch, such as "timeoutMs" or "auth".
	Params map[string]any
}

// ErrInsecureRedirect is returned for a redirect from https to http after a login. The broker refuses such redirects, too, if it
// follows them itself.
var ErrInsecureRedirect = errors.New("redirect from https to plain http after a login")

// ofTheBroker contains the header fields that the broker sets itself.
var ofTheBroker = map[string]bool{
	"Authorization": true, "Connection": true, "Content-Length": true, "Expect": true, "Host": true, "Keep-Alive": true,
	"Te": true, "Trailer": true, "Transfer-Encoding": true, "Upgrade": true}

// RoundTrip makes one request.
func (t *Transport) RoundTrip(request *http.Request) (*http.Response, error) {
	if request.Body != nil {
		defer request.Body.Close()
	}
	params := map[string]any{"maxRedirects": 0}
	for name, value := range t.Params {
		params[name] = value
	}
	if credential, err := credential(request); err != nil {
		return nil, err
	} else if credential != nil {
		params["credential"] = credential
	}
	wanted := watchword.Request{URL: request.URL.String(), Method: request.Method, Params: params}
	for name, values := range request.Header {
		for _, value := range values {
			if !ofTheBroker[http.CanonicalHeaderKey(name)] {
				wanted.Headers = append(wanted.Headers, [2]string{name, value})
			}
		}
	}
	if request.Body != nil && request.Body != http.NoBody {
		wanted.Body, wanted.Size = request.Body, request.ContentLength
	}
	stream, err := t.Client.Open(request.Context(), wanted)
	if err != nil {
		return nil, err
	}
	response := made(request, stream)
	location, err := response.Location()
	if err != nil || request.URL.Scheme != "https" || response.StatusCode/100 != 3 {
		return response, nil
	}
	// Whether the fetch used a login is known only at its end.
	defer stream.Body.Close()
	rest, err := io.ReadAll(stream.Body)
	if err != nil {
		return nil, err
	}
	if stream.Completed().Auth != nil || followsLogin(request) { // guard: go-redirect-behind-the-login
		if location.Scheme != "https" {
			return nil, ErrInsecureRedirect
		}
		response.Request = request.WithContext(context.WithValue(request.Context(), loggedIn{}, true))
	}
	response.Body = io.NopCloser(bytes.NewReader(rest))
	return response, nil
}

// loggedIn is the context key that marks a redirect chain in which a login was used. To the broker, each hop is a separate fetch.
type loggedIn struct{}

func followsLogin(request *http.Request) bool {
	previous := request.Response
	return previous != nil && previous.Request != nil && previous.Request.Context().Value(loggedIn{}) != nil
}

func credential(request *http.Request) (*watchword.Credential, error) {
	header := request.Header.Get("Authorization")
	if header == "" {
		return nil, nil
	}
	if user, password, isBasic := request.BasicAuth(); isBasic {
		return &watchword.Credential{Type: "password", User: user, Password: password}, nil
	}
	scheme, value, _ := strings.Cut(header, " ")
	switch lower(scheme) {
	case "basic":
		return nil, errors.New("malformed Authorization header: Basic needs base64 with a colon")
	case "bearer":
		return &watchword.Credential{Type: "token", Token: strings.Trim(value, " \t")}, nil
	}
	return &watchword.Credential{Type: "header", Scheme: scheme, Value: value}, nil
}

// lower converts only ASCII letters to lower case: strings.ToLower maps U+0130 to i and U+212A to k.
func lower(text string) string {
	return strings.Map(func(letter rune) rune {
		if 'A' <= letter && letter <= 'Z' {
			return letter + 'a' - 'A'
		}
		return letter
	}, text)
}

func made(request *http.Request, stream *watchword.Stream) *http.Response {
	header := http.Header{}
	for _, field := range stream.Headers {
		header.Add(field[0], field[1])
	}
	response := &http.Response{
		Status: fmt.Sprintf("%d %s", stream.Status, http.StatusText(stream.Status)), StatusCode: stream.Status,
		Proto: "HTTP/" + stream.HTTPVersion, Header: header, Body: stream.Body, ContentLength: -1, Request: request}
	response.ProtoMajor, response.ProtoMinor, _ = http.ParseHTTPVersion(response.Proto)
	if stream.BodyBytes != nil {
		response.ContentLength = *stream.BodyBytes
	}
	return response
}

var _ http.RoundTripper = (*Transport)(nil)
var _ io.Closer = (*watchword.Client)(nil)
