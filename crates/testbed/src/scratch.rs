//! The private directory of one instance, and the instance's name.

pub mod guard;
pub mod host_before;
pub mod in_memory;
pub mod lock;
pub mod owner;
mod subnets;

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use host_before::HostBefore;
use lock::HostLock;
use owner::Owner;

/// The parent directory. Short, because the path of a unix socket has at most 107 bytes.
pub(crate) const PARENT: &str = "/tmp";
/// Prefix of the directories' names, and of the cgroups' names.
pub(crate) const PREFIX: &str = "rubelet-t";
/// The environment variable that marks the processes of an instance; shims inherit it from their
/// containerd.
pub(crate) const MARKER: &str = "RUBELET_TESTBED";
/// Prefix of the bridges' names.
pub(crate) const BRIDGE_PREFIX: &str = "rblt";

/// The directory in which runtimes look for `hosts.toml` files of registries.
pub(crate) const REGISTRY_HOSTS: &str = "certs.d";

/// The first port of instances.
const FIRST_PORT: u16 = 20_000;

const OWNER_FILE: &str = "owner";
const OCTET_FILE: &str = "octet";
const SUBNET_FILE: &str = "subnet";

/// One private directory. It is not removed when this value is dropped: see [`crate::cleanup`].
#[derive(Debug, Clone)]
pub struct Scratch {
    dir: PathBuf,
    tag: String,
    octet: u8,
    subnet: String,
}

impl Scratch {
    /// Creates a new directory, owned by this process, with a subnet that no other instance has.
    ///
    /// # Errors
    /// When the directory can't be created, or no subnet is free.
    pub fn create(lock: &HostLock) -> Result<Self> {
        let wanted = std::env::var_os(in_memory::VARIABLE).is_some();
        Self::create_at(lock, wanted && in_memory::is_possible())
    }

    fn create_at(_lock: &HostLock, in_memory: bool) -> Result<Self> {
        let live = all()?;
        let taken: Vec<u8> = live.iter().map(|other| other.octet).collect();
        let (subnet, octet) = subnets::free(&taken)?;
        let before = HostBefore::of_first(&live)?;
        let dir = tempfile::Builder::new()
            .prefix(PREFIX)
            .rand_bytes(6)
            .tempdir_in(PARENT)
            .with_context(|| format!("cannot create a directory in {PARENT}"))?
            .keep();
        // Containers and group members of other users need access.
        std::fs::set_permissions(&dir, Permissions::from_mode(0o755))?;
        if in_memory {
            in_memory::set_up(&dir)?;
        }
        let scratch = Self {
            tag: tag_of(&dir),
            dir,
            octet,
            subnet: subnet.to_string(),
        };
        scratch.write(OWNER_FILE, &Owner::me()?.to_string())?;
        scratch.write(OCTET_FILE, &octet.to_string())?;
        scratch.write(SUBNET_FILE, &scratch.subnet)?;
        scratch.write(host_before::FILE, &before.to_text())?;
        Ok(scratch)
    }

    /// The directory.
    #[must_use]
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// The directory's name, unique on this machine: `rubelet-tAbCdEf`.
    #[must_use]
    pub fn tag(&self) -> &str {
        &self.tag
    }

    /// The cgroup below which everything of this instance runs: `/rubelet-tAbCdEf`.
    #[must_use]
    pub fn cgroup_root(&self) -> String {
        format!("/{}", self.tag)
    }

    /// The name of this instance's bridge: `rbltAbCdEf`. No later instance has it, so that what is found with it is
    /// this one's also after its removal.
    #[must_use]
    pub fn bridge(&self) -> String {
        let own = self.tag.strip_prefix(PREFIX).unwrap_or(&self.tag);
        format!("{BRIDGE_PREFIX}{own}")
    }

    /// The name of this instance's CNI network, which is in the comments of iptables rules.
    #[must_use]
    pub(crate) fn network_name(&self) -> String {
        format!("{}-{}", self.bridge(), self.tag)
    }

    /// The subnet of this instance's pods, of 254 addresses.
    #[must_use]
    pub fn subnet(&self) -> String {
        self.subnet.clone()
    }

    /// Prefix of all pod addresses of the instance: `10.215.3.`.
    #[must_use]
    pub fn address_prefix(&self) -> &str {
        self.subnet.strip_suffix("0/24").unwrap_or(&self.subnet)
    }

    /// A subnet of 2046 addresses that is unused on this machine.
    ///
    /// # Errors
    /// When none is free.
    pub fn wide_subnet() -> Result<String> {
        Ok(subnets::free_wide()?.to_string())
    }

    /// One of ten ports that no other instance has, below the ephemeral range; `number` is less
    /// than 10.
    #[must_use]
    pub(crate) fn port(&self, number: u16) -> u16 {
        FIRST_PORT + u16::from(self.octet) * 10 + number % 10
    }

    /// A command whose process and children are marked as part of this instance.
    #[must_use]
    pub fn command(&self, program: impl AsRef<std::ffi::OsStr>) -> Command {
        let mut command = Command::new(program);
        command.env(MARKER, &self.tag);
        command
    }

    /// The directory in which the runtime looks for mirrors of registries; missing at first.
    #[must_use]
    pub fn registry_hosts_dir(&self) -> PathBuf {
        self.dir.join(REGISTRY_HOSTS)
    }

    /// A directory inside this one, created if missing.
    ///
    /// # Errors
    /// When it can't be created.
    pub fn subdir(&self, name: &str) -> Result<PathBuf> {
        let dir = self.dir.join(name);
        std::fs::create_dir_all(&dir)
            .with_context(|| format!("cannot create {}", dir.display()))?;
        Ok(dir)
    }

    /// An instance whose directory is missing.
    pub(crate) fn lost(tag: &str) -> Self {
        Self {
            dir: Path::new(PARENT).join(tag),
            tag: tag.to_owned(),
            octet: 0,
            subnet: String::new(),
        }
    }

    pub(crate) fn owner_is_alive(&self) -> bool {
        self.owner().is_some_and(Owner::is_alive)
    }

    pub(crate) fn is_own(&self) -> bool {
        self.owner()
            .is_some_and(|owner| Owner::me().is_ok_and(|me| me == owner))
    }

    pub(crate) fn host_before(&self) -> Option<HostBefore> {
        let text = std::fs::read_to_string(self.dir.join(host_before::FILE)).ok()?;
        Some(HostBefore::parse(&text))
    }

    fn owner(&self) -> Option<Owner> {
        Owner::parse(&std::fs::read_to_string(self.dir.join(OWNER_FILE)).ok()?)
    }

    fn write(&self, name: &str, text: &str) -> Result<()> {
        let path = self.dir.join(name);
        std::fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))
    }

    fn open(dir: PathBuf) -> Self {
        let octet = std::fs::read_to_string(dir.join(OCTET_FILE))
            .ok()
            .and_then(|text| text.trim().parse().ok())
            .unwrap_or(0);
        let subnet = std::fs::read_to_string(dir.join(SUBNET_FILE)).unwrap_or_default();
        Self {
            tag: tag_of(&dir),
            dir,
            octet,
            subnet,
        }
    }
}

/// All instances on this machine, including those of dead owners.
pub(crate) fn all() -> Result<Vec<Scratch>> {
    let entries =
        std::fs::read_dir(PARENT).with_context(|| format!("cannot read the directory {PARENT}"))?;
    let mut found: Vec<_> = entries
        .filter_map(Result::ok)
        .filter(|entry| entry.file_name().to_string_lossy().starts_with(PREFIX))
        .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()))
        .map(|entry| Scratch::open(entry.path()))
        .collect();
    found.sort_by(|a, b| a.tag.cmp(&b.tag));
    Ok(found)
}

fn tag_of(dir: &Path) -> String {
    dir.file_name()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned()
}

#[cfg(test)]
mod tests {
    use super::Scratch;

    #[test]
    fn an_instance_has_a_bridge_of_its_own_name() {
        let bridge = |tag| Scratch::lost(tag).bridge();
        assert_eq!(bridge("rubelet-tAbCdEf"), "rbltAbCdEf");
        assert_ne!(bridge("rubelet-tAbCdEf"), bridge("rubelet-tAbCdEg"));
    }
}
