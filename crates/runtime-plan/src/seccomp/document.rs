//! Profiles from files: the OCI's form, and docker's, which adds conditions to rules.

use rubelet_oci::{Action, Architecture, ArgRule, Seccomp, SyscallRule};
use serde::{Deserialize, Deserializer};

use super::Arch;
use crate::{Refusal, capability::CapSet};

/// Flags that the kernel knows.
const FLAGS: [&str; 4] = [
    "SECCOMP_FILTER_FLAG_TSYNC",
    "SECCOMP_FILTER_FLAG_LOG",
    "SECCOMP_FILTER_FLAG_SPEC_ALLOW",
    "SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV",
];

/// The properties on which the rules of a profile may depend.
#[derive(Debug, Clone, Copy)]
pub struct ProfileContext {
    /// The container's bounding set.
    pub capabilities: CapSet,
    /// Architecture of the host.
    pub arch: Arch,
    /// Kernel release as `(major, minor)`.
    pub kernel: (u32, u32),
}

/// Both forms.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Profile {
    default_action: Action,
    default_errno_ret: Option<u32>,
    #[serde(default, deserialize_with = "nullable")]
    architectures: Vec<Architecture>,
    #[serde(default, deserialize_with = "nullable")]
    arch_map: Vec<Family>,
    #[serde(default, deserialize_with = "nullable")]
    flags: Vec<String>,
    #[serde(default, deserialize_with = "nullable")]
    listener_path: String,
    #[serde(default, deserialize_with = "nullable")]
    syscalls: Vec<Rule>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Family {
    architecture: Architecture,
    #[serde(default, deserialize_with = "nullable")]
    sub_architectures: Vec<Architecture>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Rule {
    #[serde(default, deserialize_with = "nullable")]
    name: String,
    #[serde(default, deserialize_with = "nullable")]
    names: Vec<String>,
    action: Action,
    errno_ret: Option<u32>,
    #[serde(default, deserialize_with = "nullable")]
    args: Vec<ArgRule>,
    #[serde(default, deserialize_with = "nullable")]
    includes: Condition,
    #[serde(default, deserialize_with = "nullable")]
    excludes: Condition,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Condition {
    #[serde(default, deserialize_with = "nullable")]
    arches: Vec<String>,
    #[serde(default, deserialize_with = "nullable")]
    caps: Vec<String>,
    #[serde(default, deserialize_with = "nullable")]
    min_kernel: String,
}

/// Go writes `null` for empty values.
fn nullable<'de, D, T>(from: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de> + Default,
{
    Ok(Option::deserialize(from)?.unwrap_or_default())
}

/// Reads a profile.
///
/// # Errors
/// Not JSON, not a profile, or one with parts that are not supported.
pub fn localhost(json: &str, context: &ProfileContext) -> Result<Seccomp, Refusal> {
    let refuse = |message: String| Refusal::new("linux.security_context.seccomp", message);
    let profile: Profile = serde_json::from_str(json)
        .map_err(|error| refuse(format!("not a valid seccomp profile: {error}")))?;
    if !profile.listener_path.is_empty() {
        return Err(refuse(
            "listenerPath is not supported: this runtime has no agent that decides about system calls".to_owned(),
        ));
    }
    if let Some(flag) = profile
        .flags
        .iter()
        .find(|flag| !FLAGS.contains(&flag.as_str()))
    {
        return Err(refuse(format!("unknown flag {flag:?}")));
    }
    if !profile.architectures.is_empty() && !profile.arch_map.is_empty() {
        return Err(refuse(
            "architectures and archMap exclude each other".to_owned(),
        ));
    }
    let native = context.arch.executes()[0];
    let mut architectures = profile.architectures;
    for family in profile.arch_map {
        if family.architecture == native {
            architectures.push(native);
            architectures.extend(family.sub_architectures);
        }
    }
    let mut syscalls = Vec::with_capacity(profile.syscalls.len());
    for mut rule in profile.syscalls {
        if !rule.name.is_empty() {
            rule.names.push(rule.name);
        }
        if rule.names.is_empty() {
            return Err(refuse("a rule of syscalls names no call".to_owned()));
        }
        let included = rule.includes.parts(context, OfAll::Every);
        let excluded = rule.excludes.parts(context, OfAll::Any);
        if included
            .map_err(refuse)?
            .iter()
            .all(|part| *part != Some(false))
            && !excluded.map_err(refuse)?.contains(&Some(true))
        {
            syscalls.push(SyscallRule {
                names: rule.names,
                action: rule.action,
                errno_ret: rule.errno_ret,
                args: rule.args,
            });
        }
    }
    let found = Seccomp {
        default_action: profile.default_action,
        default_errno_ret: profile.default_errno_ret,
        architectures,
        flags: profile.flags,
        listener_path: String::new(),
        syscalls,
    };
    super::compile(&found, context.arch)?;
    Ok(found)
}

impl Condition {
    /// True for each part that holds; `None` for a missing part. A rule is included by all of its
    /// capabilities and excluded by any of them.
    fn parts(&self, now: &ProfileContext, of_caps: OfAll) -> Result<[Option<bool>; 3], String> {
        let own: &[&str] = match now.arch {
            Arch::X86_64 => &["amd64", "x86_64", "SCMP_ARCH_X86_64"],
            Arch::Aarch64 => &["arm64", "aarch64", "SCMP_ARCH_AARCH64"],
        };
        let arches = (!self.arches.is_empty())
            .then(|| self.arches.iter().any(|arch| own.contains(&arch.as_str())));
        let mut had = self.caps.iter().map(|name| now.capabilities.has(name));
        let caps = (!self.caps.is_empty()).then(|| match of_caps {
            OfAll::Every => had.all(|has| has),
            OfAll::Any => had.any(|has| has),
        });
        let kernel = if self.min_kernel.is_empty() {
            None
        } else {
            let wanted = self
                .min_kernel
                .split_once('.')
                .and_then(|(major, minor)| Some((major.parse().ok()?, minor.parse().ok()?)));
            let wanted: (u32, u32) = wanted.ok_or_else(|| {
                format!(
                    "minKernel {:?} is not a kernel release such as 4.8",
                    self.min_kernel
                )
            })?;
            Some(now.kernel >= wanted)
        };
        Ok([arches, caps, kernel])
    }
}

/// The number of capabilities that a condition needs.
#[derive(Clone, Copy)]
enum OfAll {
    Every,
    Any,
}
