//! The bridge's record besides the pods: its ranges, and the position of the allocation in each.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use rubelet_store::{Loaded, Record, Stored};
use serde::{Deserialize, Serialize};

use crate::{Cidr, NetworkError, NetworkFailure, NetworkRefusal};

/// Allocations between two writes of the record.
const STRIDE: u32 = 64;

/// The ranges, with their record.
#[derive(Debug)]
pub(super) struct RangeState {
    path: PathBuf,
    stored: StoredRanges,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct StoredRanges {
    /// The pod CIDRs that the cluster assigned to this node.
    pod_cidrs: Vec<Cidr>,
    /// The default range that was chosen.
    chosen: Option<Cidr>,
    /// For each range, a number after the latest allocations.
    next: BTreeMap<Cidr, u32>,
}

impl Stored for StoredRanges {
    const KIND: &'static str = "network-ranges";
    const MIGRATIONS: &'static [rubelet_store::Migration] = &[];
}

impl RangeState {
    pub(super) fn load(dir: &Path) -> Result<Self, NetworkFailure> {
        let path = dir.join("ranges.json");
        let loaded = Record::<StoredRanges>::at(&path)
            .load()
            .map_err(|error| NetworkFailure::LoadRecord(Box::new(error)))?;
        let stored = match loaded {
            Loaded::Valid(stored) => stored,
            // Everything in it can be recovered: the cluster sends its ranges again, and the rest
            // is not essential.
            Loaded::Missing | Loaded::Quarantined { .. } => StoredRanges::default(),
        };
        Ok(Self { path, stored })
    }

    /// The ranges for new pods: those of the cluster, else of the settings, else a default one.
    pub(super) fn wanted(
        &mut self,
        settings: &[Cidr],
        choose: impl FnOnce() -> Result<Cidr, NetworkRefusal>,
    ) -> Result<Vec<Cidr>, NetworkError> {
        let mut wanted = if self.stored.pod_cidrs.is_empty() {
            settings.to_vec()
        } else {
            self.stored.pod_cidrs.clone()
        };
        if wanted.is_empty() {
            let chosen = match self.stored.chosen {
                Some(chosen) => chosen,
                None => {
                    let chosen = choose()?;
                    self.stored.chosen = Some(chosen);
                    self.save()?;
                    chosen
                }
            };
            wanted.push(chosen);
        }
        Ok(wanted)
    }

    pub(super) fn pod_cidrs(&self) -> &[Cidr] {
        &self.stored.pod_cidrs
    }

    /// Stores the cluster's ranges; returns the previous ones.
    pub(super) fn set_pod_cidrs(&mut self, cidrs: &[Cidr]) -> Result<Vec<Cidr>, NetworkFailure> {
        let old = std::mem::replace(&mut self.stored.pod_cidrs, cidrs.to_vec());
        self.save()?;
        Ok(old)
    }

    /// The number at which the allocation in a range begins.
    pub(super) fn next(&self, range: Cidr) -> u32 {
        self.stored.next.get(&range).copied().unwrap_or(0)
    }

    /// Stores the positions of allocation, once per [`STRIDE`] addresses: a restart skips some
    /// addresses, and reuses none early.
    pub(super) fn note(&mut self, next: &[(Cidr, u32)]) -> Result<(), NetworkFailure> {
        let mut changed = false;
        for &(range, number) in next {
            let ahead = (number / STRIDE + 1) * STRIDE;
            changed |= self.stored.next.insert(range, ahead) != Some(ahead);
        }
        if changed { self.save() } else { Ok(()) }
    }

    fn save(&self) -> Result<(), NetworkFailure> {
        Record::at(&self.path)
            .save(&self.stored)
            .map(drop)
            .map_err(NetworkFailure::SaveRecord)
    }
}
