// SPDX-License-Identifier: Apache-2.0
// A server and a client with Encrypted Client Hello (RFC 9849). See README.md.
//
//	ech serve|hide PORT PUBLIC-NAME FILE-FOR-CONFIGURATION CERTIFICATE KEY [CERTIFICATE KEY...]
//	ech visit NAME ADDRESS PORT FILE-OF-AUTHORITIES FILE-OF-CONFIGURATION
package main

import (
	"bufio"
	"crypto/ecdh"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/binary"
	"encoding/json"
	"errors"
	"io"
	"log"
	"net"
	"os"
)

func must[T any](value T, err error) T {
	if err != nil {
		log.Fatal(err)
	}
	return value
}

func with16(content []byte) []byte {
	return append(binary.BigEndian.AppendUint16(nil, uint16(len(content))), content...)
}

// ECHConfig (RFC 9849, section 4): X25519, HKDF-SHA256, AES-128-GCM.
func configuration(public []byte, name string) []byte {
	content := []byte{7, 0, 0x20}
	content = append(content, with16(public)...)
	content = append(content, with16([]byte{0, 1, 0, 1})...)
	content = append(content, 0, byte(len(name)))
	content = append(content, name...)
	content = append(content, 0, 0)
	return append([]byte{0xfe, 0x0d}, with16(content)...)
}

// `tells`: clients that use another key get this one.
func serve(tells bool, port, name, file string, pairs []string) {
	key := must(ecdh.X25519().GenerateKey(rand.Reader))
	own := configuration(key.PublicKey().Bytes(), name)
	config := &tls.Config{EncryptedClientHelloKeys: []tls.EncryptedClientHelloKey{
		{Config: own, PrivateKey: key.Bytes(), SendAsRetry: tells}}}
	for ; len(pairs) > 1; pairs = pairs[2:] {
		config.Certificates = append(config.Certificates, must(tls.LoadX509KeyPair(pairs[0], pairs[1])))
	}
	listener := must(tls.Listen("tcp", ":"+port, config))
	if err := os.WriteFile(file+".new", with16(own), 0o644); err != nil {
		log.Fatal(err)
	}
	if err := os.Rename(file+".new", file); err != nil { // it listens
		log.Fatal(err)
	}
	for {
		connection := must(listener.Accept()).(*tls.Conn)
		go func() {
			defer connection.Close()
			if _, err := bufio.NewReader(connection).ReadString('\n'); err == nil {
				connection.Write([]byte("the page of " + connection.ConnectionState().ServerName + "\n"))
			}
		}()
	}
}

func visit(name, address, authorities, file string) {
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(must(os.ReadFile(authorities)))
	said := map[string]any{"accepted": false, "rejected": false, "page": "", "error": ""}
	defer func() { json.NewEncoder(os.Stdout).Encode(said) }()
	connection, err := tls.Dial("tcp", address, &tls.Config{ServerName: name, RootCAs: pool,
		EncryptedClientHelloConfigList: must(os.ReadFile(file))})
	if err != nil {
		var rejection *tls.ECHRejectionError
		said["rejected"], said["error"] = errors.As(err, &rejection), err.Error()
		return
	}
	defer connection.Close()
	said["accepted"] = connection.ConnectionState().ECHAccepted
	must(connection.Write([]byte("the page, please\n")))
	said["page"] = string(must(io.ReadAll(connection)))
}

func main() {
	switch arguments := os.Args[2:]; os.Args[1] {
	case "serve", "hide":
		serve(os.Args[1] == "serve", arguments[0], arguments[1], arguments[2], arguments[3:])
	case "visit":
		visit(arguments[0], net.JoinHostPort(arguments[1], arguments[2]), arguments[3], arguments[4])
	default:
		log.Fatal("serve, hide or visit")
	}
}
