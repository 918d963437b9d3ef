//! `/logs/`: the files below `/var/log`, as Go's file server shows them to the kubelet's clients.

use http::{HeaderValue, Response, StatusCode, header};
use rubelet_http_core::{
    respond::{self, Body},
    shutdown::Shutdown,
};
use rubelet_server::{LogError, NodeView, SystemLog, log};

use crate::plain_text::{nowhere, text};

const HTML: HeaderValue = HeaderValue::from_static("text/html; charset=utf-8");
const BYTES: HeaderValue = HeaderValue::from_static("application/octet-stream");
/// Lines of a container must not run as a script in the browser of whoever reads them.
const NO_SNIFFING: HeaderValue = HeaderValue::from_static("nosniff");

/// Answers with a file, or the names in a directory. `slash`: the path ends with one, as those of
/// directories do.
pub(super) async fn answer(
    view: &dyn NodeView,
    path: Vec<String>,
    slash: bool,
    shutdown: Shutdown,
) -> Response<Body> {
    let last = path.last().cloned().unwrap_or_else(|| "logs".to_owned());
    match (view.system_log(path).await, slash) {
        (Ok(SystemLog::Directory(names)), true) => page(&names),
        (Ok(SystemLog::Directory(_)), false) => moved(&format!("{}/", encoded(&last))),
        (Ok(SystemLog::File { .. }), true) => moved(&format!("../{}", encoded(&last))),
        (Ok(SystemLog::File { is_text, content }), false) => {
            let mut response = respond::text_pieces(log::until(shutdown, content));
            let headers = response.headers_mut();
            if !is_text {
                headers.insert(header::CONTENT_TYPE, BYTES);
            }
            headers.insert(header::X_CONTENT_TYPE_OPTIONS, NO_SNIFFING);
            response
        }
        (Err(LogError::NotFound(_)), _) => nowhere(),
        (Err(LogError::BadRequest(why)), _) => text(StatusCode::FORBIDDEN, &format!("{why}\n")),
        (Err(LogError::Internal(why)), _) => {
            text(StatusCode::INTERNAL_SERVER_ERROR, &format!("{why}\n"))
        }
    }
}

/// A page with a link to each name.
fn page(names: &[String]) -> Response<Body> {
    let mut html = String::from(
        "<!doctype html>\n<meta name=\"viewport\" content=\"width=device-width\">\n<pre>\n",
    );
    for name in names {
        // A colon in the first part of a relative address would end its scheme.
        let prefix = if name.contains(':') { "./" } else { "" };
        let (address, shown) = (encoded(name), escaped(name));
        html.push_str(&format!("<a href=\"{prefix}{address}\">{shown}</a>\n"));
    }
    html.push_str("</pre>\n");
    let mut response = respond::text(StatusCode::OK, html);
    response.headers_mut().insert(header::CONTENT_TYPE, HTML);
    response
}

/// A relative address: a proxy on the way has another path.
fn moved(to: &str) -> Response<Body> {
    let mut response = respond::empty(StatusCode::MOVED_PERMANENTLY);
    let to = HeaderValue::from_str(to).expect("encoded addresses are plain text");
    response.headers_mut().insert(header::LOCATION, to);
    response
}

/// A name in an address.
fn encoded(name: &str) -> String {
    let mut text = String::new();
    for byte in name.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' => text.push(char::from(byte)),
            b'-' | b'.' | b'_' | b'~' | b'/' | b':' | b'@' | b'=' | b'+' | b'$' => {
                text.push(char::from(byte));
            }
            _ => text.push_str(&format!("%{byte:02X}")),
        }
    }
    text
}

/// A name on a page.
fn escaped(name: &str) -> String {
    name.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&#34;")
        .replace('\'', "&#39;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_containers_are_no_markup() {
        assert_eq!(
            escaped("<b a=\"'\">&.log"),
            "&lt;b a=&#34;&#39;&#34;&gt;&amp;.log"
        );
        assert_eq!(
            encoded("pods/a b\"<%?#é.log"),
            "pods/a%20b%22%3C%25%3F%23%C3%A9.log"
        );
    }
}
