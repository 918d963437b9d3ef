//! The capability sets of a process.

use rubelet_oci::{CAPABILITIES, Capabilities};
use rustix::thread::{
    CapabilitySet, CapabilitySets, capabilities, capability_is_in_bounding_set,
    clear_ambient_capability_set, configure_capability_in_ambient_set,
    remove_capability_from_bounding_set, set_capabilities,
};

use crate::step::{Step, StepError};

/// The five sets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ProcessCapabilities {
    bounding: CapabilitySet,
    effective: CapabilitySet,
    inheritable: CapabilitySet,
    permitted: CapabilitySet,
    ambient: CapabilitySet,
}

impl ProcessCapabilities {
    /// Reads the names.
    pub(crate) fn read(names: &Capabilities) -> Result<Self, StepError> {
        Ok(Self {
            bounding: set(&names.bounding)?,
            effective: set(&names.effective)?,
            inheritable: set(&names.inheritable)?,
            permitted: set(&names.permitted)?,
            ambient: set(&names.ambient)?,
        })
    }

    /// Drops capabilities from the bounding set. Returns the names of requested capabilities that
    /// this process does not have and can't grant.
    pub(crate) fn bound(&mut self) -> Result<Vec<&'static str>, StepError> {
        let own = capabilities(None).step(|| "cannot read the capabilities of this process")?;
        let wanted = self.effective | self.permitted | self.inheritable | self.bounding;
        let missing = wanted - own.permitted;
        self.effective &= own.permitted;
        self.permitted &= own.permitted;
        self.inheritable &= own.permitted;
        self.ambient &= own.permitted;
        for number in 0..64 {
            let one = CapabilitySet::from_bits_retain(1 << number);
            match capability_is_in_bounding_set(one) {
                Ok(true) if !self.bounding.contains(one) => {
                    remove_capability_from_bounding_set(one)
                        .step(|| format!("cannot drop the capability {}", name(number)))?;
                }
                Ok(_) => {}
                // EINVAL: the kernel has no more capabilities.
                Err(_) => break,
            }
        }
        let missing = (0..64).filter(|number| missing.bits() & (1 << number) != 0);
        Ok(missing.map(name).collect())
    }

    /// Applies the sets. Must run as the final user.
    pub(crate) fn apply(&self) -> Result<(), StepError> {
        let sets = CapabilitySets {
            effective: self.effective,
            permitted: self.permitted,
            inheritable: self.inheritable,
        };
        set_capabilities(None, sets).step(|| "cannot set the capabilities")?;
        // Fails only on a kernel without ambient capabilities.
        let _ = clear_ambient_capability_set();
        for number in 0..CAPABILITIES.len() {
            let one = CapabilitySet::from_bits_retain(1 << number);
            if self.ambient.contains(one) {
                configure_capability_in_ambient_set(one, true)
                    .step(|| format!("cannot make the capability {} ambient", name(number)))?;
            }
        }
        Ok(())
    }
}

/// Makes all permitted capabilities effective again: setuid(2) clears the effective set.
pub(crate) fn raise_permitted() -> Result<(), StepError> {
    let own = capabilities(None).step(|| "cannot read the capabilities of this process")?;
    let sets = CapabilitySets {
        effective: own.permitted,
        ..own
    };
    set_capabilities(None, sets).step(|| "cannot raise the capabilities of this process")
}

fn name(number: usize) -> &'static str {
    CAPABILITIES
        .get(number)
        .copied()
        .unwrap_or("of a newer kernel")
}

fn set(names: &[String]) -> Result<CapabilitySet, StepError> {
    let mut bits = 0;
    for name in names {
        let plain = name.strip_prefix("CAP_").unwrap_or(name);
        let number = CAPABILITIES.iter().position(|known| *known == plain);
        let number = number.ok_or_else(|| StepError(format!("unknown capability {name:?}")))?;
        bits |= 1_u64 << number;
    }
    Ok(CapabilitySet::from_bits_retain(bits))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_have_the_kernels_numbers() {
        let names = ["CAP_SYS_ADMIN".to_owned(), "NET_RAW".to_owned()];
        let read = set(&names).unwrap();
        assert_eq!(read, CapabilitySet::SYS_ADMIN | CapabilitySet::NET_RAW);
        assert_eq!(
            set(&["CAP_CHECKPOINT_RESTORE".to_owned()]).unwrap(),
            CapabilitySet::CHECKPOINT_RESTORE
        );
    }

    #[test]
    fn unknown_names_are_refused() {
        let failure = set(&["CAP_FLY".to_owned()]).unwrap_err();
        assert_eq!(failure.0, "unknown capability \"CAP_FLY\"");
    }
}
