// SPDX-License-Identifier: MIT

// Go's echo server for bench/echo: one goroutine per connection. It is a separate program, so
// that the rows of the other one do not link package net.
package main

import (
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"runtime"
)

const bufferSize = 4096

// fail exits with an error: a server that fails must not be measured.
func fail(format string, args ...any) {
	fmt.Fprintf(os.Stderr, "rival-go-echo: "+format+"\n", args...)
	os.Exit(1)
}

func echo(peer net.Conn) {
	defer peer.Close()
	buffer := make([]byte, bufferSize)
	for {
		n, err := peer.Read(buffer)
		if err != nil {
			return
		}
		// Write writes all of the data or fails.
		if _, err := peer.Write(buffer[:n]); err != nil {
			return
		}
	}
}

func serve(listener *net.TCPListener) {
	for {
		peer, err := listener.AcceptTCP()
		if err != nil {
			fail("%v", err)
		}
		// This is Go's default. Set explicitly, so that it stays that way.
		if err := peer.SetNoDelay(true); err != nil {
			fail("%v", err)
		}
		go echo(peer)
	}
}

func main() {
	port := flag.Int("port", 0, "where to listen; 0: any")
	workers := flag.Int("workers", 1, "GOMAXPROCS")
	flag.Parse()
	if flag.NArg() > 0 || *workers < 1 || *port < 0 || *port > 65535 {
		fail("usage: rival-go-echo [--port N] [--workers N]")
	}
	runtime.GOMAXPROCS(*workers)
	address := &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: *port}
	listener, err := net.ListenTCP("tcp4", address)
	if err != nil {
		fail("%v", err)
	}
	fmt.Printf("port %d\n", listener.Addr().(*net.TCPAddr).Port)
	go serve(listener)
	// The server exits when stdin is closed.
	_, _ = io.Copy(io.Discard, os.Stdin)
}
