//! Handles one request.

use std::io::{self, Write};
use std::net::TcpStream;
use std::sync::PoisonError;
use std::sync::atomic::Ordering;

use super::RegistryState;
use super::request::Request;

/// Handles one request and closes the connection. `is_store`: it came to the blob server of
/// redirects.
pub(super) fn answer(stream: &TcpStream, is_store: bool, shared: &RegistryState) -> io::Result<()> {
    let Some(request) = Request::read(stream)? else {
        return Ok(());
    };
    drop(shared.gate.lock().unwrap_or_else(PoisonError::into_inner));
    let rules = &shared.rules;
    if is_store {
        if request.field("authorization").is_some() {
            shared.leaked.fetch_add(1, Ordering::Relaxed);
        }
        return blob(stream, &request, shared);
    }
    if request.path == "/token" {
        return match rules.access.token(&request) {
            Some(token) => json(stream, "200 OK", "", &token),
            None => error(stream, "401 Unauthorized", "", "UNAUTHORIZED"),
        };
    }
    if !rules.access.allows(&request) {
        let repository = repository_of(&request.path);
        let challenge = rules.access.challenge(stream.local_addr()?, repository);
        let field = format!("WWW-Authenticate: {}\r\n", challenge.unwrap_or_default());
        return error(stream, "401 Unauthorized", &field, "UNAUTHORIZED");
    }
    if request.path == "/v2/" {
        return json(stream, "200 OK", "", "{}");
    }
    let Some((directory, last)) = request.path.rsplit_once('/') else {
        return error(stream, "404 Not Found", "", "NAME_UNKNOWN");
    };
    if directory.ends_with("/manifests") {
        if let Some(status) = rules.refused {
            let status = format!("{status} Refused");
            return error(stream, &status, "Retry-After: 1\r\n", "TOOMANYREQUESTS");
        }
        let digest = if last.contains(':') {
            last
        } else {
            shared.resolved.fetch_add(1, Ordering::Relaxed);
            shared.content.top()
        };
        return whole(stream, &request, shared, digest);
    }
    match shared.elsewhere {
        Some(store) => {
            let place = format!("Location: http://{store}/store/{last}?signed=yes\r\n");
            json(stream, "307 Temporary Redirect", &place, "")
        }
        None => blob(stream, &request, shared),
    }
}

/// The part between `/v2/` and `/manifests/` or `/blobs/`.
fn repository_of(path: &str) -> &str {
    let path = path.strip_prefix("/v2/").unwrap_or_default();
    let end = path.find("/manifests/").or_else(|| path.find("/blobs/"));
    &path[..end.unwrap_or_default()]
}

/// A blob, as a range if requested, and only its first half while there are truncations left.
fn blob(mut stream: &TcpStream, request: &Request, shared: &RegistryState) -> io::Result<()> {
    let digest = request.path.rsplit('/').next().unwrap_or_default();
    let Some((_, bytes)) = shared.content.blob(digest) else {
        return error(stream, "404 Not Found", "", "BLOB_UNKNOWN");
    };
    let cut = shared.content.is_layer(digest)
        && shared
            .cuts
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| {
                left.checked_sub(1)
            })
            .is_ok();
    let from = request.range_start().unwrap_or(0).min(bytes.len());
    let rest = &bytes[from..];
    let status = if from > 0 {
        let last = bytes.len().saturating_sub(1);
        format!(
            "206 Partial Content\r\nContent-Range: bytes {from}-{last}/{}",
            bytes.len()
        )
    } else {
        "200 OK".to_owned()
    };
    write!(
        stream,
        "HTTP/1.1 {status}\r\nContent-Type: application/octet-stream\r\nContent-Length: {}\r\n\
         Connection: close\r\n\r\n",
        rest.len()
    )?;
    if request.method != "HEAD" {
        let end = if cut { rest.len() / 2 } else { rest.len() };
        stream.write_all(&rest[..end])?;
    }
    Ok(())
}

/// A document with its type and digest.
fn whole(
    mut stream: &TcpStream,
    request: &Request,
    shared: &RegistryState,
    digest: &str,
) -> io::Result<()> {
    let Some((media_type, bytes)) = shared.content.blob(digest) else {
        return error(stream, "404 Not Found", "", "MANIFEST_UNKNOWN");
    };
    write!(
        stream,
        "HTTP/1.1 200 OK\r\nContent-Type: {media_type}\r\nContent-Length: {}\r\n\
         Docker-Content-Digest: {digest}\r\nConnection: close\r\n\r\n",
        bytes.len()
    )?;
    if request.method != "HEAD" {
        stream.write_all(bytes)?;
    }
    Ok(())
}

fn error(stream: &TcpStream, status: &str, fields: &str, code: &str) -> io::Result<()> {
    let body =
        format!("{{\"errors\":[{{\"code\":\"{code}\",\"message\":\"said the registry\"}}]}}");
    json(stream, status, fields, &body)
}

fn json(mut stream: &TcpStream, status: &str, fields: &str, body: &str) -> io::Result<()> {
    write!(
        stream,
        "HTTP/1.1 {status}\r\nContent-Type: application/json\r\n{fields}Content-Length: {}\r\n\
         Connection: close\r\n\r\n{body}",
        body.len()
    )
}
