//! What a relist finds, and what a pod's record says.
