//! The supervisor of one pod's processes.
