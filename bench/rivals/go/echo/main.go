// SPDX-License-Identifier: MIT

// Go's echo server, for bench/echo: a goroutine for each connection. A program
// of its own, so that the rows of the other one do not carry package net.
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

// fail ends the program: a server that fails must not be measured.
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
		// Write writes all of it, or fails.
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
		// Go sets it by itself; said here so that it stays so.
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
	// The end of stdin is the end of the server.
	_, _ = io.Copy(io.Discard, os.Stdin)
}
