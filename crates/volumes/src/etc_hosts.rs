//! `/etc/hosts` of a pod's containers.

use std::{
    fmt::Write,
    fs::{OpenOptions, Permissions},
    io::{self, Read, Seek as _, Write as _},
    os::unix::fs::{OpenOptionsExt, PermissionsExt as _},
    path::PathBuf,
};

use rubelet_api::network::HostAlias;
use rustix::fs::OFlags;

use crate::{dirs::PodDirs, hostname::PodHostname};

/// The text for a pod with its own network: loopback names, one line for each address of the pod,
/// then its aliases.
#[must_use]
pub fn pod_hosts(ips: &[impl AsRef<str>], hostname: &PodHostname, aliases: &[HostAlias]) -> String {
    let mut text = String::from(
        "# Kubernetes-managed hosts file.\n\
         127.0.0.1\tlocalhost\n\
         ::1\tlocalhost ip6-localhost ip6-loopback\n\
         fe00::0\tip6-localnet\n\
         fe00::0\tip6-mcastprefix\n\
         fe00::1\tip6-allnodes\n\
         fe00::2\tip6-allrouters\n",
    );
    let name = &hostname.name;
    for ip in ips {
        let ip = ip.as_ref();
        let line = match hostname.fqdn() {
            Some(fqdn) => writeln!(text, "{ip}\t{fqdn}\t{name}"),
            None => writeln!(text, "{ip}\t{name}"),
        };
        line.expect("writing to a string can't fail");
    }
    text.push_str(&alias_lines(aliases));
    text
}

/// The bytes for a pod on the host's network: the host's own file, then the pod's aliases.
#[must_use]
pub fn host_network_hosts(host_file: &[u8], aliases: &[HostAlias]) -> Vec<u8> {
    let mut bytes = b"# Kubernetes-managed hosts file (host network).\n".to_vec();
    bytes.extend_from_slice(host_file);
    bytes.extend_from_slice(alias_lines(aliases).as_bytes());
    bytes
}

fn alias_lines(aliases: &[HostAlias]) -> String {
    let mut text = String::new();
    if !aliases.is_empty() {
        text.push_str("\n# Entries added by HostAliases.\n");
    }
    for alias in aliases {
        writeln!(text, "{}\t{}", alias.ip, alias.hostnames.join("\t"))
            .expect("writing to a string can't fail");
    }
    text
}

/// Writes the file, if its content differs. It is written in place: running containers have this
/// file mounted and would not see a replacement.
///
/// # Errors
/// The disk fails, or the pod's directory is missing.
pub fn write(dirs: &PodDirs, content: &[u8]) -> io::Result<PathBuf> {
    let path = dirs.etc_hosts();
    // Opened once: all steps apply to this file, even if its name is reused.
    let mut file = OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o644)
        .custom_flags((OFlags::NOFOLLOW | OFlags::NONBLOCK).bits().cast_signed())
        .open(&path)?;
    let found = file.metadata()?;
    if !found.is_file() {
        return Err(io::Error::other("not a regular file"));
    }
    if !holds(&mut file, content)? {
        file.set_len(0)?;
        file.rewind()?;
        file.write_all(content)?;
    }
    if found.permissions().mode() & 0o7777 != 0o644 {
        file.set_permissions(Permissions::from_mode(0o644))?;
    }
    Ok(path)
}

/// True if the file has exactly this content. Containers may write to the file, so it may be
/// endless.
fn holds(file: impl Read, content: &[u8]) -> io::Result<bool> {
    let mut found = Vec::new();
    let most = content.len() as u64 + 1;
    file.take(most).read_to_end(&mut found)?;
    Ok(found == content)
}

#[cfg(test)]
mod tests {
    use std::{fs, os::unix::fs::MetadataExt};

    use super::*;
    use crate::{directory, test_support::Scratch};

    fn hostname(domain: Option<&str>) -> PodHostname {
        PodHostname {
            name: "web".into(),
            domain: domain.map(Into::into),
            truncated: false,
        }
    }

    fn alias(ip: &str, names: &[&str]) -> HostAlias {
        HostAlias {
            ip: ip.into(),
            hostnames: names.iter().map(|&name| name.into()).collect(),
        }
    }

    const LOOPBACK: &str = "# Kubernetes-managed hosts file.
127.0.0.1\tlocalhost
::1\tlocalhost ip6-localhost ip6-loopback
fe00::0\tip6-localnet
fe00::0\tip6-mcastprefix
fe00::1\tip6-allnodes
fe00::2\tip6-allrouters
";

    #[test]
    fn a_file_that_a_container_has_made_endless_is_not_read_to_its_end() {
        assert!(!holds(io::repeat(b'x'), b"xx").unwrap());
        assert!(holds(&b"xx"[..], b"xx").unwrap());
        assert!(!holds(&b"x"[..], b"xx").unwrap());
        let scratch = Scratch::new();
        let dirs = scratch.dirs();
        directory::ensure(dirs.pod(), 0o750).unwrap();
        let path = write(&dirs, b"one\n").unwrap();
        // A container can do this to its /etc/hosts.
        OpenOptions::new()
            .write(true)
            .open(&path)
            .unwrap()
            .set_len(1 << 40)
            .unwrap();
        fs::set_permissions(&path, Permissions::from_mode(0o4777)).unwrap();
        write(&dirs, b"two\n").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"two\n");
        assert_eq!(directory::mode(&path).unwrap(), 0o644);
    }

    #[test]
    fn a_link_instead_of_the_file_is_not_followed() {
        let scratch = Scratch::new();
        let dirs = scratch.dirs();
        directory::ensure(dirs.pod(), 0o750).unwrap();
        let other = scratch.path().join("other");
        fs::write(&other, "other").unwrap();
        std::os::unix::fs::symlink(&other, dirs.etc_hosts()).unwrap();
        assert!(write(&dirs, b"x").is_err());
        assert_eq!(fs::read(&other).unwrap(), b"other");
    }

    #[test]
    fn a_pods_file_has_its_addresses_and_aliases() {
        let domain = Some("db.default.svc.cluster.local");
        let aliases = [alias("10.0.0.9", &["a", "b.c"]), alias("::9", &["d"])];
        for (ips, domain, aliases, lines) in [
            (&["10.0.0.1"][..], None, &[][..], "10.0.0.1\tweb\n"),
            (&[], None, &[], ""),
            (
                &["10.0.0.1", "fd00::1"],
                domain,
                &[],
                "10.0.0.1\tweb.db.default.svc.cluster.local\tweb\n\
                 fd00::1\tweb.db.default.svc.cluster.local\tweb\n",
            ),
            (
                &["10.0.0.1"],
                None,
                &aliases,
                "10.0.0.1\tweb\n\n# Entries added by HostAliases.\n10.0.0.9\ta\tb.c\n::9\td\n",
            ),
        ] {
            let text = pod_hosts(ips, &hostname(domain), aliases);
            assert_eq!(text, format!("{LOOPBACK}{lines}"));
        }
    }

    #[test]
    fn on_the_hosts_network_the_hosts_file_is_copied() {
        let header = "# Kubernetes-managed hosts file (host network).\n";
        let host = b"127.0.0.1 localhost \xff\n";
        let mut expected = header.as_bytes().to_vec();
        expected.extend_from_slice(host);
        assert_eq!(host_network_hosts(host, &[]), expected);
        expected.extend_from_slice(b"\n# Entries added by HostAliases.\n10.0.0.9\ta\n");
        assert_eq!(
            host_network_hosts(host, &[alias("10.0.0.9", &["a"])]),
            expected
        );
    }

    #[test]
    fn the_file_stays_the_same_file() {
        let scratch = Scratch::new();
        let dirs = scratch.dirs();
        assert!(write(&dirs, b"x").is_err(), "the pod has no directory yet");
        directory::ensure(dirs.pod(), 0o750).unwrap();
        let path = write(&dirs, b"a longer first text").unwrap();
        let before = path.metadata().unwrap();
        assert_eq!(directory::mode(&path).unwrap(), 0o644);
        write(&dirs, b"short").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"short");
        assert_eq!(path.metadata().unwrap().ino(), before.ino());
    }
}
