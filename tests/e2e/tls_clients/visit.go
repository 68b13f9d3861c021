// SPDX-License-Identifier: Apache-2.0
// Visits a server with Go's net/http: visit NAME ADDRESS FILE-OF-AUTHORITIES FILE-TO-UPLOAD. See README.md.
package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
)

func must[T any](value T, err error) T {
	if err != nil {
		log.Fatal(err)
	}
	return value
}

type program struct {
	name, address string
	config        *tls.Config
	with2         bool
}

// Each visit is a connection of its own.
func (p program) visit(step, method, path string, body []byte) {
	dialer := net.Dialer{}
	transport := &http.Transport{
		TLSClientConfig:   p.config.Clone(), // with the same cache of sessions
		ForceAttemptHTTP2: p.with2,
		DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
			return dialer.DialContext(ctx, network, p.address)
		},
	}
	if !p.with2 {
		transport.TLSNextProto = map[string]func(string, *tls.Conn) http.RoundTripper{}
	}
	defer transport.CloseIdleConnections()
	request := must(http.NewRequest(method, "https://"+p.name+path, bytes.NewReader(body)))
	response := must((&http.Client{Transport: transport}).Do(request))
	hash := sha256.New()
	size := must(io.Copy(hash, response.Body))
	response.Body.Close()
	json.NewEncoder(os.Stdout).Encode(map[string]any{
		"step": step, "protocol": response.Proto, "resumed": response.TLS.DidResume, "status": response.StatusCode,
		"bytes": size, "sha256": fmt.Sprintf("%x", hash.Sum(nil)),
	})
}

func main() {
	authorities := x509.NewCertPool()
	authorities.AppendCertsFromPEM(must(os.ReadFile(os.Args[3])))
	upload := must(os.ReadFile(os.Args[4]))
	for _, with2 := range []bool{false, true} {
		client := program{name: os.Args[1], address: net.JoinHostPort(os.Args[2], "443"), with2: with2, config: &tls.Config{
			RootCAs: authorities, ClientSessionCache: tls.NewLRUClientSessionCache(8)}}
		client.visit("first", "GET", "/page", nil)
		client.visit("again", "GET", "/page", nil)
		client.visit("upload", "PUT", fmt.Sprintf("/by-go-%t", with2), upload)
	}
}
