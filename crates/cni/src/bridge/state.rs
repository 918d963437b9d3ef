//! What the bridge remembers besides the pods: which ranges it has, and how far each was given out.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use rubelet_base::ErrorChain;
use rubelet_store::{Loaded, Record, Stored};
use serde::{Deserialize, Serialize};

use crate::{Cidr, NetworkError};

/// How many addresses are given out between two writes.
const STRIDE: u32 = 64;

/// The ranges, with their record.
#[derive(Debug)]
pub(super) struct RangeState {
    path: PathBuf,
    kept: Kept,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Kept {
    /// What the cluster gave this node.
    pod_cidrs: Vec<Cidr>,
    /// What was chosen where nothing was given.
    chosen: Option<Cidr>,
    /// For each range a number behind all that were given out last.
    next: BTreeMap<Cidr, u32>,
}

impl Stored for Kept {
    const KIND: &'static str = "network-ranges";
    const MIGRATIONS: &'static [rubelet_store::Migration] = &[];
}

impl RangeState {
    pub(super) fn load(dir: &Path) -> Result<Self, NetworkError> {
        let path = dir.join("ranges.json");
        let loaded = Record::<Kept>::at(&path)
            .load()
            .map_err(|error| NetworkError::Failed(ErrorChain(&error).to_string()))?;
        let kept = match loaded {
            Loaded::Valid(kept) => kept,
            // All of it can be had again: from the cluster, by choice, or it is a matter of comfort.
            Loaded::Missing | Loaded::Quarantined { .. } => Kept::default(),
        };
        Ok(Self { path, kept })
    }

    /// The ranges for new pods: those of the cluster, of the settings, or one of our choice.
    pub(super) fn wanted(
        &mut self,
        settings: &[Cidr],
        choose: impl FnOnce() -> Result<Cidr, String>,
    ) -> Result<Vec<Cidr>, NetworkError> {
        let mut wanted = if self.kept.pod_cidrs.is_empty() {
            settings.to_vec()
        } else {
            self.kept.pod_cidrs.clone()
        };
        if wanted.is_empty() {
            let chosen = match self.kept.chosen {
                Some(chosen) => chosen,
                None => {
                    let chosen = choose().map_err(NetworkError::Refused)?;
                    self.kept.chosen = Some(chosen);
                    self.save()?;
                    chosen
                }
            };
            wanted.push(chosen);
        }
        Ok(wanted)
    }

    pub(super) fn pod_cidrs(&self) -> &[Cidr] {
        &self.kept.pod_cidrs
    }

    /// Remembers what the cluster gave; tells what it gave before.
    pub(super) fn set_pod_cidrs(&mut self, cidrs: &[Cidr]) -> Result<Vec<Cidr>, NetworkError> {
        let old = std::mem::replace(&mut self.kept.pod_cidrs, cidrs.to_vec());
        self.save()?;
        Ok(old)
    }

    /// Where to begin in a range.
    pub(super) fn next(&self, range: Cidr) -> u32 {
        self.kept.next.get(&range).copied().unwrap_or(0)
    }

    /// Notes how far ranges were given out, now and then: after a restart some addresses are left
    /// out, and none comes again too soon.
    pub(super) fn note(&mut self, next: &[(Cidr, u32)]) -> Result<(), NetworkError> {
        let mut changed = false;
        for &(range, number) in next {
            let ahead = (number / STRIDE + 1) * STRIDE;
            changed |= self.kept.next.insert(range, ahead) != Some(ahead);
        }
        if changed { self.save() } else { Ok(()) }
    }

    fn save(&self) -> Result<(), NetworkError> {
        Record::at(&self.path)
            .save(&self.kept)
            .map(drop)
            .map_err(|error| NetworkError::Failed(ErrorChain(&error).to_string()))
    }
}
