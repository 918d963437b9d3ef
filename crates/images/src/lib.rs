//! Images: pulling, unpacking, root file systems.
