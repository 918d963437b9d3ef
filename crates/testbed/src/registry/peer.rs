//! Debian's `docker-registry`: an independent registry.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, bail};

use super::content::{Compression, Content, Form};
use super::{Access, access};
use crate::agent::free_port;
use crate::command::stdout_of;
use crate::scratch::Scratch;
use crate::scratch::lock::HostLock;
use crate::{packages, target_dir, wait};

const PACKAGE: &str = "docker-registry";
const START_TIMEOUT: Duration = Duration::from_secs(60);
/// [`access::USER`] with [`access::PASSWORD`], as htpasswd writes them with bcrypt.
const PASSWORDS: &str = "someone:$2b$05$SGui6QmnoTwZq27Uzxs4O.5ko3OUTJJdwYknO1dF46rTtIqyDaEEe\n";

/// A running `docker-registry`; it ends when the value is dropped.
#[derive(Debug)]
pub struct PeerRegistry {
    address: SocketAddr,
    access: Access,
    child: Child,
}

impl PeerRegistry {
    /// Starts one that stores its data in the instance's directory. It supports
    /// [`Access::Anonymous`] and [`Access::Basic`].
    ///
    /// # Errors
    /// The package is missing, or the program doesn't answer.
    pub fn start(scratch: &Scratch, access: Access) -> Result<Self> {
        let program = program()?;
        let port = free_port(Ipv4Addr::LOCALHOST.into())?;
        let dir = scratch.subdir(&format!("registry-{port}"))?;
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        let passwords = dir.join("passwords");
        std::fs::write(&passwords, PASSWORDS)?;
        let auth = match access {
            Access::Basic => format!(
                "auth:\n  htpasswd:\n    realm: tests\n    path: {}\n",
                passwords.display()
            ),
            _ => String::new(),
        };
        let config = dir.join("config.yml");
        std::fs::write(
            &config,
            format!(
                "version: 0.1\nlog:\n  level: error\nstorage:\n  filesystem:\n    rootdirectory: \
                 {}\nhttp:\n  addr: {address}\n{auth}",
                dir.join("storage").display()
            ),
        )?;
        let log = std::fs::File::create(dir.join("log"))?;
        let child = scratch
            .command(program)
            .arg("serve")
            .arg(&config)
            .env("OTEL_TRACES_EXPORTER", "none")
            .process_group(0)
            .stdin(Stdio::null())
            .stdout(Stdio::from(log.try_clone()?))
            .stderr(Stdio::from(log))
            .spawn()
            .context("cannot start docker-registry")?;
        let registry = Self {
            address,
            access,
            child,
        };
        wait::until("docker-registry answers", START_TIMEOUT, || {
            Ok(registry.send("GET", "/v2/", "", &[]).ok().map(drop))
        })?;
        Ok(registry)
    }

    /// The name of an image here.
    #[must_use]
    pub fn image(&self, name: &str) -> String {
        format!("{}/{name}", self.address)
    }

    /// Uploads an image under `name`, with the tag `1`.
    ///
    /// # Errors
    /// The registry rejects it.
    pub fn push(&self, name: &str, form: Form, compression: Compression) -> Result<()> {
        let content = Content::build(form, compression)?;
        for (digest, bytes) in content.parts() {
            let uploads = format!("/v2/{name}/blobs/uploads/");
            let (status, place) = self.send("POST", &uploads, "", &[])?;
            let place = place.with_context(|| format!("no upload location: {status}"))?;
            let path = place.split_once("://").map_or(place.as_str(), |(_, rest)| {
                rest.find('/').map_or("/", |start| &rest[start..])
            });
            let and = if path.contains('?') { '&' } else { '?' };
            let target = format!("{path}{and}digest={digest}");
            let (status, _) = self.send("PUT", &target, "application/octet-stream", bytes)?;
            if status != 201 {
                bail!("docker-registry rejected a blob: status {status}");
            }
        }
        for (tag, media_type, bytes) in content.documents() {
            let target = format!("/v2/{name}/manifests/{tag}");
            let (status, _) = self.send("PUT", &target, media_type, bytes)?;
            if status != 201 {
                bail!("docker-registry rejected a manifest: status {status}");
            }
        }
        Ok(())
    }

    /// Sends a request; returns the status and the `Location` header of the response.
    fn send(
        &self,
        method: &str,
        target: &str,
        media_type: &str,
        body: &[u8],
    ) -> Result<(u16, Option<String>)> {
        let mut stream = TcpStream::connect(self.address)?;
        let authorization = match self.access {
            Access::Basic => format!("Authorization: {}\r\n", access::BASIC),
            _ => String::new(),
        };
        write!(
            stream,
            "{method} {target} HTTP/1.1\r\nHost: {}\r\n{authorization}Content-Type: {media_type}\r\n\
             Content-Length: {}\r\nConnection: close\r\n\r\n",
            self.address,
            body.len()
        )?;
        stream.write_all(body)?;
        let mut answer = BufReader::new(stream);
        let mut line = String::new();
        answer.read_line(&mut line)?;
        let status = line.split(' ').nth(1).and_then(|text| text.parse().ok());
        let status = status.with_context(|| format!("docker-registry sent {line:?}"))?;
        let mut place = None;
        loop {
            line.clear();
            if answer.read_line(&mut line)? == 0 || line.trim().is_empty() {
                break;
            }
            if let Some((name, value)) = line.split_once(':')
                && name.eq_ignore_ascii_case("location")
            {
                place = Some(value.trim().to_owned());
            }
        }
        answer.read_to_end(&mut Vec::new())?;
        Ok((status, place))
    }
}

impl Drop for PeerRegistry {
    fn drop(&mut self) {
        // It may have exited by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The program from the package, unpacked by this run or an earlier one; the host's own package
/// state is not changed.
fn program() -> Result<PathBuf> {
    let _lock = HostLock::take()?;
    let cache = target_dir::cache()?;
    let dir = cache.join(PACKAGE);
    let program = dir.join("usr/bin").join(PACKAGE);
    if program.is_file() {
        return Ok(program);
    }
    let work = tempfile::Builder::new()
        .prefix("fetch-")
        .tempdir_in(cache)?;
    let deb = packages::download(PACKAGE, work.path())?;
    let unpacked = work.path().join("unpacked");
    stdout_of(
        Command::new("dpkg-deb")
            .arg("--extract")
            .arg(&deb)
            .arg(&unpacked),
    )?;
    // The rename comes last, so that a directory with this name is always complete.
    std::fs::rename(&unpacked, &dir)
        .with_context(|| format!("cannot rename {} to {}", unpacked.display(), dir.display()))?;
    Ok(program)
}
