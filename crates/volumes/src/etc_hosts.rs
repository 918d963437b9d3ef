//! `/etc/hosts` of a pod's containers.

use std::{
    fmt::Write,
    fs::{self, OpenOptions},
    io::{self, Write as _},
    os::unix::fs::OpenOptionsExt,
    path::PathBuf,
};

use rubelet_api::network::HostAlias;

use crate::{dirs::PodDirs, folder, hostname::PodHostname};

/// The text for a pod with a network of its own: loopback names, one line for each address of the
/// pod, then its aliases.
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

/// Writes the file, if its content is another one. It is written in place: running containers have
/// this very file mounted and would not see a new one under its name.
///
/// # Errors
/// The disk fails, or the pod's folder is missing.
pub fn write(dirs: &PodDirs, content: &[u8]) -> io::Result<PathBuf> {
    let path = dirs.etc_hosts();
    if !fs::read(&path).is_ok_and(|old| old == content) {
        let mut options = OpenOptions::new();
        options.write(true).create(true).truncate(true).mode(0o644);
        options.open(&path)?.write_all(content)?;
    }
    folder::set_mode(&path, 0o644)?;
    Ok(path)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::MetadataExt;

    use super::*;
    use crate::test_support::Scratch;

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
        assert!(write(&dirs, b"x").is_err(), "the pod has no folder yet");
        folder::ensure(dirs.pod(), 0o750).unwrap();
        let path = write(&dirs, b"a longer first text").unwrap();
        let before = path.metadata().unwrap();
        assert_eq!(folder::mode(&path).unwrap(), 0o644);
        write(&dirs, b"short").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"short");
        assert_eq!(path.metadata().unwrap().ino(), before.ino());
    }
}
