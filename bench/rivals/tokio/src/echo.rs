// SPDX-License-Identifier: MIT

//! Tokio's echo server for `bench/echo`: one task per connection. It is a separate program, so
//! that it is not compiled together with the rows of the other one.

use std::io::{Read, Write};
use std::net::Ipv4Addr;
use std::process::exit;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

const BUFFER_SIZE: usize = 4096;
const USAGE: &str = "usage: rival-tokio-echo [--port N] [--workers N]";

/// Exits with an error: a server that fails must not be measured.
fn fail(message: &str) -> ! {
    eprintln!("rival-tokio-echo: {message}");
    exit(1);
}

fn parse_options() -> (u16, usize) {
    let (mut port, mut workers) = (0, 1);
    let mut args = std::env::args().skip(1);
    while let Some(flag) = args.next() {
        let value = args.next().unwrap_or_else(|| fail(USAGE));
        let number = value.parse().unwrap_or_else(|_| fail(USAGE));
        match flag.as_str() {
            "--port" => port = number,
            "--workers" if number > 0 => workers = usize::from(number),
            _ => fail(USAGE),
        }
    }
    (port, workers)
}

async fn echo(mut peer: TcpStream) -> std::io::Result<()> {
    let mut buffer = vec![0; BUFFER_SIZE];
    loop {
        let n = peer.read(&mut buffer).await?;
        if n == 0 {
            return Ok(());
        }
        peer.write_all(&buffer[..n]).await?;
    }
}

async fn serve(port: u16) -> std::io::Result<()> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).await?;
    println!("port {}", listener.local_addr()?.port());
    std::io::stdout().flush()?;
    loop {
        let (peer, _) = listener.accept().await?;
        peer.set_nodelay(true)?;
        tokio::spawn(echo(peer));
    }
}

fn main() {
    let (port, workers) = parse_options();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(workers)
        .enable_io()
        .build()
        .unwrap_or_else(|err| fail(&err.to_string()));
    runtime.spawn(async move {
        if let Err(err) = serve(port).await {
            fail(&err.to_string());
        }
    });
    // This thread is not a worker. It waits for the end of stdin, which ends the server.
    let _ = std::io::stdin().read_to_end(&mut Vec::new());
}
